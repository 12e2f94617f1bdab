#include "common/trace/trace_reader.h"

#include <algorithm>

#include "common/base/job_name.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/trace/temp_file.h"

namespace mets::trace {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const char kOwn[] = "# mets-trace 1 job=cnn\nt_us,op,block,bytes,name\n";
const char kPlain[] = "t_us,op,block,bytes\n";

absl::StatusOr<Trace> Read(const std::string& text,
                           const std::string& name = "some.csv") {
  TempFile file(name);
  file.Put(text);
  return ReadTrace(file.path());
}

struct BadTrace {
  const char* name;
  std::string text;
  int line;
  const char* what;
};

std::ostream& operator<<(std::ostream& out, const BadTrace& bad) {
  return out << bad.name;
}

class BadTraceTest : public testing::TestWithParam<BadTrace> {};

TEST_P(BadTraceTest, IsRefusedWithFileLineAndReason) {
  TempFile file("bad.csv");
  file.Put(GetParam().text);
  const absl::StatusOr<Trace> trace = ReadTrace(file.path());
  ASSERT_FALSE(trace.ok());
  EXPECT_THAT(
      std::string(trace.status().message()),
      StartsWith(absl::StrCat(file.path(), ":", GetParam().line, ": ")));
  EXPECT_THAT(std::string(trace.status().message()),
              HasSubstr(GetParam().what));
}

std::string Own(const std::string& rows) { return kOwn + rows; }
std::string Plain(const std::string& rows) { return kPlain + rows; }

INSTANTIATE_TEST_SUITE_P(
    All, BadTraceTest,
    testing::Values(
        BadTrace{"Empty", "", 1, "the file is empty"},
        BadTrace{"Columns", "time,op\n", 1, "expected 't_us,op,block,bytes'"},
        BadTrace{"Version", "# mets-trace 9 job=a\n", 1,
                 "format version '9'; this program reads version 1"},
        BadTrace{"JobName", "# mets-trace 1 job=a b\n", 1, "job=NAME"},
        BadTrace{"ReturnAtTheEnd", "# mets-trace 1 job=a\r\n", 1,
                 "found '# mets-trace 1 job=a\\r'"},
        BadTrace{"OwnColumns", "# mets-trace 1 job=a\nt_us,op,block,bytes\n", 2,
                 "expected 't_us,op,block,bytes,name'"},
        BadTrace{"TimeGoesBack", Plain("5,malloc,1,8\n4,free,1,8\n"), 3,
                 "time goes back from 5 us to 4 us"},
        BadTrace{"TimeGoesBackLate",
                 Plain("1279620.25,malloc,1,8\n813751,free,1,8\n"), 3,
                 "time goes back from 1279620.25 us to 813751 us"},
        BadTrace{"NeverAllocated", Plain("5,free,7,8\n"), 2,
                 "free of block 7, which was never allocated"},
        BadTrace{"FreedTwice", Plain("5,malloc,1,8\n5,free,1,8\n6,free,1,8\n"),
                 4, "which line 3 has freed"},
        BadTrace{"ReadAfterFree",
                 Plain("5,malloc,1,8\n5,free,1,8\n6,read,1,8\n"), 4,
                 "read of block 1, which line 3 has freed"},
        BadTrace{"WriteNeverAllocated", Plain("5,write,1,8\n"), 2,
                 "write of block 1, which was never allocated"},
        BadTrace{"MallocTwice", Plain("5,malloc,1,8\n5,malloc,1,8\n"), 3,
                 "which is allocated since line 2"},
        BadTrace{"Size", Plain("5,malloc,1,8\n5,read,1,9\n"), 3,
                 "with 9 bytes; expected 8 as in line 2"},
        BadTrace{"UnknownOp", Plain("5,realloc,1,8\n"), 2,
                 "op is 'realloc'; expected malloc, free, read or write"},
        BadTrace{"OpsOfMetsOnly", Plain("5,begin,1,0\n"), 2, "op is 'begin'"},
        BadTrace{"FieldsMissing", Plain("5,malloc,1\n"), 2,
                 "expected 4 fields (t_us,op,block,bytes); found 3"},
        BadTrace{"LastLineCut", Plain("5,malloc,1,8\n6,free,1,8"), 3,
                 "the file is cut"},
        BadTrace{"Negative", Plain("-5,malloc,1,8\n"), 2, "t_us is '-5'"},
        BadTrace{"Decimals", Plain("5.1234,malloc,1,8\n"), 2,
                 "at most three decimals"},
        BadTrace{"BlockName", Plain("5,malloc,x1,8\n"), 2, "block is 'x1'"},
        BadTrace{"NegativeBytes", Plain("5,malloc,1,-8\n"), 2, "bytes is '-8'"},
        BadTrace{"TooManyBytes", Plain("5,malloc,1,9000000000000000000\n"), 2,
                 "at most 2^44"},
        BadTrace{"TooManyBytesInAll",
                 Plain("5,malloc,1,17592186044416\n5,malloc,2,1\n"), 3,
                 "17592186044417 bytes are allocated at once"},
        BadTrace{"LongLine", Plain(std::string(1100000, '5')), 2,
                 "more than 1048576 characters"},
        BadTrace{"CommentInPlain", Plain("# end 0\n"), 2, "expected an event"},
        BadTrace{"NoEnd", Own("5,malloc,1,8,\n"), 3,
                 "cut after 1 events; expected '# end EVENTS'"},
        BadTrace{"EventsMissing", Own("5,malloc,1,8,\n# end 2\n"), 4,
                 "written with 2 events, but has 1"},
        BadTrace{"AfterTheEnd", Own("# end 0\n5,malloc,1,8,\n"), 4,
                 "nothing may follow"},
        BadTrace{"EndWithoutBegin", Own("5,end,1,0,\n# end 1\n"), 3,
                 "end of op 1, which does not run"},
        BadTrace{"BeginTwice", Own("5,begin,1,0,A\n6,begin,1,0,A\n"), 4,
                 "which has begun"},
        BadTrace{"BytesOfOp", Own("5,begin,1,8,A\n"), 3,
                 "expected 0 in a line of an op"},
        BadTrace{"Recording", Own("5,begin,1,0,A\n# error too slow\n"), 4,
                 "the recording ended by an error: too slow"}),
    [](const testing::TestParamInfo<BadTrace>& info) {
      return info.param.name;
    });

TEST(TraceReaderTest, TracesOfMetsHaveOpsAndNames) {
  const absl::StatusOr<Trace> trace =
      Read(Own("0,malloc,1,4096,\n1.5,begin,7,0,Conv2D\n1.5,read,1,4096,\n"
               "2.001,end,7,0,\n3,begin,8,0,Conv2D\n# end 5\n"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->job, "cnn");
  ASSERT_EQ(trace->events.size(), 5);
  EXPECT_EQ(trace->events[0].bytes, Bytes(4096));
  const Event& begin = trace->events[1];
  EXPECT_EQ(begin.kind, EventKind::kBegin);
  EXPECT_EQ(begin.id, 7);
  EXPECT_EQ(begin.time, absl::Nanoseconds(1500));
  EXPECT_EQ(trace->names[begin.name], "Conv2D");
  EXPECT_EQ(trace->events[4].name, begin.name);
  EXPECT_EQ(trace->events[3].time, absl::Nanoseconds(2001));
  EXPECT_EQ(trace->names[trace->events[3].name], "");
}

TEST(TraceReaderTest, AFreedBlocksNumberMayComeAgain) {
  EXPECT_TRUE(Read(Plain("5,malloc,1,8\n5,free,1,8\n6,malloc,1,16\n")).ok());
}

TEST(TraceReaderTest, WhatWasFreedDoesNotCount) {
  EXPECT_TRUE(Read(Plain("5,malloc,1,17592186044416\n"
                         "5,free,1,17592186044416\n5,malloc,2,8\n"))
                  .ok());
}

TEST(TraceReaderTest, FilesWhoseNameIsNoJobsGetOne) {
  for (const char* name : {"a b\xff.csv", ".csv",
                           "a-very-long-name-of-a-file-with-more-than-sixty-"
                           "three-characters.csv"}) {
    TempFile file(name);
    file.Put(Plain("5,malloc,1,8\n"));
    const absl::StatusOr<Trace> trace = ReadTrace(file.path());
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_TRUE(ValidateJobName(trace->job).ok()) << trace->job;
  }
}

// A file without end, as /dev/zero or what a few kilobytes of .xz unpack to,
// is not read to its end.
TEST(TraceReaderTest, ReadingEndsAtTheFirstWrongLine) {
  const absl::StatusOr<Trace> trace = ReadTrace("/dev/zero");
  EXPECT_THAT(std::string(trace.status().message()),
              HasSubstr("/dev/zero:1: the line has more than"));
}

TEST(TraceReaderTest, OtherToolsTracesAreNamedAfterTheFile) {
  TempFile file("vgg.csv");
  file.Put(Plain("5,malloc,1,8\n"));
  const absl::StatusOr<Trace> trace = ReadTrace(file.path());
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->job, testing::EndsWith("-vgg"));
}

int64_t PeakOf(const Trace& trace) {
  int64_t live = 0, peak = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kAlloc) live += event.bytes.count();
    if (event.kind == EventKind::kFree) live -= event.bytes.count();
    peak = std::max(peak, live);
  }
  return peak;
}

// The evidence traces that METS has recorded (figures/traces/record.py).
class RecordedTraceTest : public testing::TestWithParam<const char*> {};

TEST_P(RecordedTraceTest, HasNamedOpsAndUsesHalfAGigabyte) {
  const absl::StatusOr<Trace> trace =
      ReadTrace(absl::StrCat(METS_TRACES, "/mets-", GetParam(), ".csv.xz"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->job, GetParam());
  EXPECT_GE(PeakOf(*trace), 500'000'000);
  int ops = 0, uses = 0;
  for (const Event& event : trace->events) {
    ops += event.kind == EventKind::kBegin;
    uses += event.kind == EventKind::kRead || event.kind == EventKind::kWrite;
    if (event.kind == EventKind::kBegin) {
      EXPECT_NE(event.name, 0u);
    }
  }
  EXPECT_GT(ops, 100);
  EXPECT_GT(uses, ops);
}

INSTANTIATE_TEST_SUITE_P(All, RecordedTraceTest,
                         testing::Values("cnn", "resnet", "lstm", "attention",
                                         "embedding", "autoencoder"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

// Traces of another tool, with the events and the peak that they have.
struct KnownTrace {
  const char* name;
  size_t events;
  int64_t peak;
};

class SharedTraceTest : public testing::TestWithParam<KnownTrace> {};

TEST_P(SharedTraceTest, IsReadWhole) {
  const absl::StatusOr<Trace> trace =
      ReadTrace(absl::StrCat(METS_TRACES, "/", GetParam().name, ".csv.xz"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->job, GetParam().name);
  EXPECT_EQ(trace->events.size(), GetParam().events);
  EXPECT_EQ(PeakOf(*trace), GetParam().peak);
}

INSTANTIATE_TEST_SUITE_P(
    All, SharedTraceTest,
    testing::Values(
        KnownTrace{"singa-densenet-imagenet-b48", 74972, 9306762216},
        KnownTrace{"singa-googlenet-imagenet-b64", 18538, 2991518812},
        KnownTrace{"singa-resnet-cifar100-b128", 26042, 261638440},
        KnownTrace{"singa-resnet-cifar100-b2048", 26042, 4957207204},
        KnownTrace{"singa-vgg-cifar-access", 57759, 1250738680},
        KnownTrace{"singa-vgg-cifar100-b512", 20910, 3210823120}),
    [](const testing::TestParamInfo<KnownTrace>& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace mets::trace
