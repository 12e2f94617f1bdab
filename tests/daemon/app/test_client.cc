#include "tests/daemon/app/test_client.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "mets/v1/session.grpc.pb.h"

namespace mets {

struct TestClient::Stream {
  std::unique_ptr<v1::SessionService::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::ClientMessage, v1::DaemonMessage>>
      calls;
};

TestClient::TestClient(std::string run_dir) : run_dir_(std::move(run_dir)) {}

TestClient::~TestClient() { Cancel(); }

absl::Status TestClient::ConnectDescriptors() {
  METS_ASSIGN_OR_RETURN(ipc::DescriptorChannel channel,
                        ipc::DescriptorChannel::Connect(run_dir_ + "/fd.sock"));
  METS_RETURN_IF_ERROR(channel.SendHello({}));
  METS_ASSIGN_OR_RETURN(const ipc::Welcome welcome,
                        channel.ReceiveWelcome(absl::Seconds(10)));
  channel_.emplace(std::move(channel));
  token_ = welcome.token;
  epoch_ = welcome.epoch;
  return welcome.error.empty() ? absl::OkStatus()
                               : absl::UnavailableError(welcome.error);
}

void TestClient::OpenStream() {
  Cancel();
  stream_ = std::make_unique<Stream>();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stream_->stub = v1::SessionService::NewStub(
      grpc::CreateCustomChannel("unix:" + run_dir_ + "/session.sock",
                                grpc::InsecureChannelCredentials(), arguments));
  stream_->context.set_deadline(std::chrono::system_clock::now() +
                                std::chrono::seconds(20));
  stream_->calls = stream_->stub->Connect(&stream_->context);
}

bool TestClient::Send(const v1::ClientMessage& message) {
  return stream_->calls->Write(message);
}

std::optional<v1::DaemonMessage> TestClient::Read() {
  v1::DaemonMessage message;
  if (!stream_->calls->Read(&message)) return std::nullopt;
  return message;
}

v1::DaemonMessage TestClient::ReadUntil(v1::DaemonMessage::MessageCase kind) {
  while (true) {
    std::optional<v1::DaemonMessage> message = Read();
    if (!message.has_value()) return {};
    if (message->message_case() == kind) return *std::move(message);
  }
}

absl::Status TestClient::Finish() {
  stream_->calls->WritesDone();
  v1::DaemonMessage message;
  while (stream_->calls->Read(&message)) {
  }
  const grpc::Status status = stream_->calls->Finish();
  stream_ = nullptr;
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

void TestClient::Cancel() {
  if (stream_ == nullptr) return;
  stream_->context.TryCancel();
  stream_->calls->Finish();
  stream_ = nullptr;
}

v1::ClientMessage TestClient::Hello(const std::string& job) const {
  v1::ClientMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_token(token_);
  hello.set_protocol_version(1);
  hello.set_job(job);
  hello.set_program("test");
  return message;
}

void TestClient::Join(const std::string& job) {
  ASSERT_TRUE(ConnectDescriptors().ok());
  OpenStream();
  ASSERT_TRUE(Send(Hello(job)));
  ASSERT_TRUE(ReadUntil(v1::DaemonMessage::kWelcome).has_welcome());
  v1::ClientMessage attach;
  attach.mutable_attach_device()->set_device("host0");
  attach.mutable_attach_device()->set_ops_seen(true);
  ASSERT_TRUE(Send(attach));
  const v1::DaemonMessage ready = ReadUntil(v1::DaemonMessage::kDeviceReady);
  ASSERT_EQ(ready.device_ready().error(), "");
}

v1::DaemonMessage TestClient::Acquire(uint64_t request, uint64_t bytes,
                                      uint32_t wait_ms) {
  v1::ClientMessage message;
  message.mutable_acquire()->set_request_id(request);
  message.mutable_acquire()->set_device("host0");
  message.mutable_acquire()->add_range_bytes(bytes);
  message.mutable_acquire()->set_deadline_ms(wait_ms);
  if (!Send(message)) return {};
  while (true) {
    std::optional<v1::DaemonMessage> answer = Read();
    if (!answer.has_value()) return {};
    if (answer->has_granted() || answer->has_denied()) {
      return *std::move(answer);
    }
  }
}

}  // namespace mets
