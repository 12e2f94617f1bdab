#include "daemon/transport/admin/recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/daemon/transport/admin/recording_sink.h"

namespace mets::transport {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// An operator that reads everything, until it is full.
class FakeOperator : public TraceSink {
 public:
  bool Write(std::string data) override {
    text += data;
    return !full;
  }
  void End(absl::Status status) override {
    if (!ended) end_status = std::move(status);
    ended = true;
  }

  std::string text;
  bool full = false;
  bool ended = false;
  absl::Status end_status;
};

class RecordingsTest : public ::testing::Test {
 protected:
  // A connected process of a job, with a device.
  SessionId Join(const std::string& job, std::shared_ptr<FakeStream> stream) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    close(fds[1]);
    v1::Hello hello;
    hello.set_job(job);
    ++connections_;
    hello.set_token(*registry_.Admit(
        connections_, {7, 100 + static_cast<pid_t>(connections_), 1},
        std::make_shared<FdConnection>(
            ipc::DescriptorChannel(UniqueFd(fds[0])))));
    const SessionId session = *registry_.Attach(hello, std::move(stream));
    registry_.Welcome(session);
    registry_.NoteDevice(session, "host0");
    return session;
  }

  static v1::TraceChunk Chunk(uint64_t recording, const std::string& data,
                              bool last = false) {
    v1::TraceChunk chunk;
    chunk.set_recording_id(recording);
    chunk.set_data(data);
    chunk.set_last(last);
    return chunk;
  }

  RecordingSink inputs_;
  SessionRegistry registry_{{}, inputs_};
  Recordings recordings_{registry_};
  uint64_t connections_ = 0;
  std::shared_ptr<FakeStream> stream_ = std::make_shared<FakeStream>();
  std::shared_ptr<FakeOperator> operator_ = std::make_shared<FakeOperator>();
};

TEST_F(RecordingsTest, TheClientIsToldAndItsTextReachesTheOperator) {
  const SessionId session = Join("bert", stream_);
  const auto id = recordings_.Begin("bert", "", operator_);
  ASSERT_TRUE(id.ok()) << id.status();
  ASSERT_EQ(stream_->sent.size(), 1u);
  EXPECT_TRUE(stream_->sent[0].record().on());
  EXPECT_EQ(stream_->sent[0].record().device(), "host0");
  EXPECT_EQ(stream_->sent[0].record().recording_id(), *id);
  recordings_.OnChunk(session, Chunk(*id, "a\n"));
  recordings_.Stop(*id);
  ASSERT_EQ(stream_->sent.size(), 2u);
  EXPECT_FALSE(stream_->sent[1].record().on());
  recordings_.OnChunk(session, Chunk(*id, "b\n", true));
  EXPECT_EQ(operator_->text, "a\nb\n");
  EXPECT_TRUE(operator_->ended);
  EXPECT_TRUE(operator_->end_status.ok());
}

TEST_F(RecordingsTest, TextOfOtherSessionsIsDropped) {
  Join("bert", stream_);
  const SessionId other = Join("gpt", std::make_shared<FakeStream>());
  const auto id = recordings_.Begin("bert", "host0", operator_);
  ASSERT_TRUE(id.ok());
  recordings_.OnChunk(other, Chunk(*id, "forged\n", true));
  recordings_.OnChunk(other, Chunk(*id + 1, "forged\n", true));
  EXPECT_EQ(operator_->text, "");
  EXPECT_FALSE(operator_->ended);
}

TEST_F(RecordingsTest, AnUnknownJobIsAnErrorThatNamesTheJobs) {
  Join("bert", stream_);
  const auto id = recordings_.Begin("nobody", "", operator_);
  EXPECT_TRUE(absl::IsNotFound(id.status()));
  EXPECT_THAT(std::string(id.status().message()),
              AllOf(HasSubstr("'nobody'"), HasSubstr("bert")));
  EXPECT_TRUE(
      absl::IsNotFound(recordings_.Begin("bert", "host7", operator_).status()));
}

TEST_F(RecordingsTest, AJobOfSeveralProcessesCannotBeRecorded) {
  Join("bert", stream_);
  Join("bert", std::make_shared<FakeStream>());
  const auto id = recordings_.Begin("bert", "host0", operator_);
  EXPECT_TRUE(absl::IsFailedPrecondition(id.status()));
  EXPECT_THAT(std::string(id.status().message()),
              AllOf(HasSubstr("more than one"), HasSubstr("process 101"),
                    HasSubstr("process 102")));
}

TEST_F(RecordingsTest, OneRecordingAtATime) {
  Join("bert", stream_);
  const auto first = recordings_.Begin("bert", "", operator_);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      recordings_.Begin("bert", "", operator_).status()));
  recordings_.Drop(*first);
  EXPECT_TRUE(recordings_.Begin("bert", "", operator_).ok());
}

TEST_F(RecordingsTest, TheEndOfTheStreamEndsIt) {
  const SessionId session = Join("bert", stream_);
  ASSERT_TRUE(recordings_.Begin("bert", "", operator_).ok());
  recordings_.OnStreamEnded(session);
  EXPECT_TRUE(absl::IsAborted(operator_->end_status)) << operator_->end_status;
  EXPECT_TRUE(recordings_.Begin("bert", "", operator_).ok());
}

TEST_F(RecordingsTest, AnOperatorThatDoesNotReadEndsIt) {
  const SessionId session = Join("bert", stream_);
  const auto id = recordings_.Begin("bert", "", operator_);
  ASSERT_TRUE(id.ok());
  operator_->full = true;
  recordings_.OnChunk(session, Chunk(*id, "a\n"));
  EXPECT_TRUE(absl::IsResourceExhausted(operator_->end_status));
  EXPECT_FALSE(stream_->sent.back().record().on());
}

TEST_F(RecordingsTest, TheEndOfTheDaemonEndsAll) {
  Join("bert", stream_);
  ASSERT_TRUE(recordings_.Begin("bert", "", operator_).ok());
  recordings_.Abort();
  EXPECT_TRUE(absl::IsUnavailable(operator_->end_status));
  EXPECT_TRUE(
      absl::IsUnavailable(recordings_.Begin("bert", "", operator_).status()));
}

}  // namespace
}  // namespace mets::transport
