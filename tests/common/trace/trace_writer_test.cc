#include "common/trace/trace_writer.h"

#include "common/trace/trace_format.h"
#include "common/trace/trace_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/trace/temp_file.h"

namespace mets::trace {
namespace {

using testing::HasSubstr;

Trace SmallTrace() {
  Trace trace;
  trace.job = "job-1";
  trace.names = {"", "MatMul"};
  trace.events = {
      {absl::ZeroDuration(), EventKind::kAlloc, 1, Bytes(100), 0},
      {absl::Nanoseconds(1), EventKind::kBegin, 9, Bytes(), 1},
      {absl::Nanoseconds(1), EventKind::kWrite, 1, Bytes(100), 0},
      {absl::Nanoseconds(1020), EventKind::kEnd, 9, Bytes(), 0},
      {absl::Seconds(100), EventKind::kFree, 1, Bytes(100), 0},
  };
  return trace;
}

void ExpectEqual(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.job, b.job);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(a.events[i].time, b.events[i].time);
    EXPECT_EQ(a.events[i].kind, b.events[i].kind);
    EXPECT_EQ(a.events[i].id, b.events[i].id);
    EXPECT_EQ(a.events[i].bytes, b.events[i].bytes);
    EXPECT_EQ(a.names[a.events[i].name], b.names[b.events[i].name]);
  }
}

TEST(TraceWriterTest, TheTextIsAsDocumented) {
  TempFile file("a.csv");
  ASSERT_TRUE(WriteTrace(file.path(), SmallTrace()).ok());
  EXPECT_EQ(file.Get(),
            "# mets-trace 1 job=job-1\n"
            "t_us,op,block,bytes,name\n"
            "0,malloc,1,100,\n"
            "0.001,begin,9,0,MatMul\n"
            "0.001,write,1,100,\n"
            "1.020,end,9,0,\n"
            "100000000,free,1,100,\n"
            "# end 5\n");
}

TEST(TraceWriterTest, TheReaderReadsWhatWasWritten) {
  for (const char* name : {"a.csv", "a.csv.xz"}) {
    TempFile file(name);
    ASSERT_TRUE(WriteTrace(file.path(), SmallTrace()).ok());
    const absl::StatusOr<Trace> trace = ReadTrace(file.path());
    ASSERT_TRUE(trace.ok()) << trace.status();
    ExpectEqual(*trace, SmallTrace());
  }
}

TEST(TraceWriterTest, OtherToolsTracesCanBeWrittenInMetsFormat) {
  const absl::StatusOr<Trace> before =
      ReadTrace(absl::StrCat(METS_TRACES, "/singa-vgg-cifar-access.csv.xz"));
  ASSERT_TRUE(before.ok()) << before.status();
  TempFile file("a.csv.xz");
  ASSERT_TRUE(WriteTrace(file.path(), *before).ok());
  const absl::StatusOr<Trace> after = ReadTrace(file.path());
  ASSERT_TRUE(after.ok()) << after.status();
  ExpectEqual(*after, *before);
}

TEST(TraceWriterTest, ATraceNeedsAJobName) {
  Trace trace = SmallTrace();
  trace.job = "a b";
  EXPECT_TRUE(
      absl::IsInvalidArgument(WriteTrace(TempFile("a.csv").path(), trace)));
}

TEST(TraceFormatTest, NamesLoseWhatTheFormatCannotHold) {
  std::string line;
  AppendEvent(absl::ZeroDuration(), EventKind::kBegin, 1, Bytes(), "a,b\nc",
              &line);
  EXPECT_EQ(line, "0,begin,1,0,a_b_c\n");
}

TEST(TraceFormatTest, ErrorsAreOneLine) {
  EXPECT_EQ(FormatError("two\nlines"), "# error two lines\n");
}

}  // namespace
}  // namespace mets::trace
