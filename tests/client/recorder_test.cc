#include "client/src/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/trace/trace_parser.h"

namespace mets::client {
namespace {

using ::testing::HasSubstr;
using trace::EventKind;

std::string TakeAll(Recorder& recorder) {
  std::string text;
  for (;;) {
    const Recorder::Part part = recorder.Take();
    EXPECT_LE(part.text.size(), Recorder::kPartBytes);
    if (!part.text.empty()) {
      EXPECT_EQ(part.text.back(), '\n');
    }
    text += part.text;
    if (part.last || part.text.empty()) return text;
  }
}

absl::StatusOr<trace::Trace> Parse(const std::string& text) {
  trace::TraceParser parser("text", "");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty()) continue;
    const absl::Status status = parser.Parse(line);
    if (!status.ok()) return status;
  }
  return parser.Finish(true);
}

// "malloc 1, begin 1 MatMul": the events without times.
std::string Story(const trace::Trace& trace) {
  std::string story;
  for (const trace::Event& event : trace.events) {
    const char* kinds[] = {"begin", "end", "malloc", "free", "read", "write"};
    absl::StrAppend(&story, story.empty() ? "" : ", ",
                    kinds[static_cast<int>(event.kind)], " ", event.id,
                    trace.names[event.name].empty() ? "" : " ",
                    trace.names[event.name]);
  }
  return story;
}

void Start(Recorder& recorder, std::vector<uint64_t> live = {}) {
  const absl::Status status =
      recorder.Start("job", [&live](const Recorder::AddLive& add) {
        for (uint64_t id : live) add(id, Bytes(100));
      });
  ASSERT_TRUE(status.ok()) << status;
}

TEST(RecorderTest, ARecordingIsATraceOfTheJob) {
  Recorder recorder;
  Start(recorder, {1});
  EXPECT_TRUE(recorder.on());
  const Recorder::Access accesses[] = {{1, false}, {2, true}, {7, true}};
  recorder.Alloc(2, Bytes(64));
  const uint64_t op = recorder.BeginOp("MatMul", accesses, 3);
  recorder.Alloc(3, Bytes(32));
  recorder.Write(3);
  recorder.EndOp(op);
  recorder.Free(1);
  recorder.Stop();
  EXPECT_FALSE(recorder.on());
  const auto trace = Parse(TakeAll(recorder));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->job, "job");
  EXPECT_EQ(Story(*trace),
            "malloc 1, malloc 2, begin 1 MatMul, read 1, write 2, malloc 3, "
            "write 3, end 1, free 1");
  EXPECT_EQ(trace->events[0].time, absl::ZeroDuration());
  EXPECT_EQ(trace->events[0].bytes, Bytes(100));
}

TEST(RecorderTest, WhatItDoesNotKnowIsLeftOut) {
  Recorder recorder;
  recorder.Alloc(1, Bytes(10));  // Before the recording.
  const uint64_t before = recorder.BeginOp("Before", nullptr, 0);
  EXPECT_EQ(before, 0u);
  Start(recorder);
  recorder.Free(1);
  recorder.Write(1);
  recorder.EndOp(99);
  recorder.Stop();
  recorder.Alloc(2, Bytes(10));
  const auto trace = Parse(TakeAll(recorder));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(Story(*trace), "");
}

TEST(RecorderTest, OpsOfAnEarlierRecordingDoNotEndInTheNext) {
  Recorder recorder;
  Start(recorder);
  const uint64_t op = recorder.BeginOp(nullptr, nullptr, 0);
  recorder.Stop();
  TakeAll(recorder);
  Start(recorder);
  recorder.EndOp(op);
  recorder.Stop();
  const auto trace = Parse(TakeAll(recorder));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(Story(*trace), "");
}

TEST(RecorderTest, OneRecordingAtATimeUntilItsTextIsTaken) {
  Recorder recorder;
  Start(recorder);
  const auto nothing = [](const Recorder::AddLive&) {};
  EXPECT_TRUE(absl::IsFailedPrecondition(recorder.Start("b", nothing)));
  recorder.Stop();
  EXPECT_TRUE(absl::IsFailedPrecondition(recorder.Start("b", nothing)));
  TakeAll(recorder);
  EXPECT_TRUE(recorder.Start("b", nothing).ok());
}

TEST(RecorderTest, LongRecordingsComeInPartsOfWholeLines) {
  Recorder recorder;
  Start(recorder);
  const std::string name(1000, 'x');
  for (int i = 1; i < 20000; ++i) {
    recorder.Alloc(i, Bytes(1));
    recorder.EndOp(recorder.BeginOp(name.c_str(), nullptr, 0));
  }
  recorder.Stop();
  const auto trace = Parse(TakeAll(recorder));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->events.size(), 3u * 19999);
}

TEST(RecorderTest, ARecordingThatNobodyTakesEndsWithAnError) {
  Recorder recorder(KiB(10));
  Start(recorder);
  for (int i = 1; recorder.on(); ++i) {
    ASSERT_LT(i, 10000);
    recorder.Alloc(i, Bytes(1));
  }
  recorder.Alloc(20000, Bytes(1));
  const auto trace = Parse(TakeAll(recorder));
  EXPECT_TRUE(absl::IsDataLoss(trace.status())) << trace.status();
  EXPECT_THAT(std::string(trace.status().message()),
              HasSubstr("faster than they were taken: 10 KiB"));
}

TEST(RecorderTest, AFailureIsSaidInTheLastPart) {
  Recorder recorder;
  Start(recorder);
  recorder.Fail("disk\nfull");
  const Recorder::Part part = recorder.Take();
  EXPECT_TRUE(part.last);
  EXPECT_EQ(part.error, "disk\nfull");
  EXPECT_THAT(part.text, HasSubstr("# error disk full\n"));
}

}  // namespace
}  // namespace mets::client
