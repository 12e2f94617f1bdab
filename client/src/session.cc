#include "client/src/session.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/src/fault_handler.h"
#include "client/src/log.h"
#include "common/base/status_macros.h"
#include "common/device/cuda/cuda_devices.h"
#include "common/device/host/host_map_driver.h"
#include "common/trace/trace_format.h"

namespace mets::client {
namespace {

constexpr uint32_t kProtocolVersion = 1;
constexpr absl::Duration kOpenTimeout = absl::Seconds(10);
constexpr absl::Duration kFirstRetry = absl::Milliseconds(50);
constexpr absl::Duration kLastRetry = absl::Milliseconds(500);
// How long the end of a process waits for the end of its recording.
constexpr absl::Duration kLastWords = absl::Seconds(2);
constexpr absl::Duration kReportPeriod = absl::Milliseconds(20);
// Gates that others wait for are looked at so often meanwhile.
constexpr int kGatePolls = 4;
constexpr int kExchanges = 4;  // Of chunks, before the next report.
// Of a device that is not tight, buffers are reported every so many periods,
// and their last uses with every tenth of these reports.
constexpr int kRelaxedPeriods = 50;
constexpr int kLastUseReports = 10;

absl::StatusOr<std::unique_ptr<MapDriver>> OpenMap(const std::string& kind,
                                                   const std::string& id) {
  if (kind == "host") return HostMapDriver::Create(HostMapOptions());
  if (kind == "cuda") return OpenCudaMap(id);
  return absl::FailedPreconditionError(
      absl::StrCat("device ", id, " is of kind '", kind,
                   "', which this libmets does not know"));
}

void Apply(const v1::SetLimits& limits, Device* device) {
  device->SetLimits(Bytes(static_cast<int64_t>(limits.limit_bytes())),
                    limits.tight());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Start(Settings settings) {
  auto session = absl::WrapUnique(new Session(std::move(settings)));
  Session* s = session.get();
  session->supervisor_ = std::thread([s] { s->Run(); });
  pthread_setname_np(session->supervisor_.native_handle(), "mets-session");
  const auto decided = [s]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(s->mutex_) {
    return s->connected_once_ || !s->ended_.ok();
  };
  absl::Status status = absl::OkStatus();
  {
    absl::MutexLock lock(&s->mutex_);
    if (!s->mutex_.AwaitWithTimeout(absl::Condition(&decided), kOpenTimeout)) {
      status = absl::UnavailableError("metsd did not answer within 10 s");
    } else if (!s->connected_once_) {
      status = s->ended_;
    }
  }
  if (!status.ok()) {
    session->Stop();
    return status;
  }
  session->reporter_ = std::thread([s] { s->Report(); });
  pthread_setname_np(session->reporter_.native_handle(), "mets-reporter");
  return session;
}

Session::Session(Settings settings)
    : settings_(std::move(settings)),
      extents_(inbox_, [this] { return Devices(); }),
      importer_(inbox_),
      requests_(
          importer_,
          [this](v1::ClientMessage message) { Send(std::move(message)); }),
      shares_(importer_,
              [this](v1::ClientMessage message) { Send(std::move(message)); }),
      orders_(std::make_unique<OrderWorker>(inbox_, extents_, *this,
                                            [this] { return Devices(); })) {}

Session::~Session() {
  Stop();
  for (Device* device : Devices()) StopServingFaultsOf(device);
}

void Session::Stop() {
  std::shared_ptr<Connection> connection;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    connection = connection_;
  }
  bool sending = false;
  for (Device* device : Devices()) {
    sending |= device->EndRecordings();
    sending |= device->SendLastTotals();
    device->SayMissedAccesses();
  }
  if (connection != nullptr && sending) {
    connection->FinishWriting();
    const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return connection_ == nullptr;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&ended), kLastWords);
  }
  if (connection != nullptr) connection->Close();
  inbox_.Close();
  if (supervisor_.joinable()) supervisor_.join();
  if (reporter_.joinable()) reporter_.join();
  orders_->Stop();
  extents_.Stop();
  requests_.OnEnded(absl::UnavailableError("the process is ending"));
  shares_.OnEnded(absl::UnavailableError("the process is ending"));
}

void Session::BreakForTest() {
  absl::MutexLock lock(&mutex_);
  if (connection_ != nullptr) connection_->Close();
}

// Under the mutex: the supervisor ends a connection, with what it may still
// receive, before it opens the next.
void Session::Send(v1::ClientMessage message) {
  absl::MutexLock lock(&mutex_);
  if (connection_ != nullptr) connection_->Send(std::move(message));
}

absl::StatusOr<Grant> Session::Acquire(Device& device,
                                       const std::vector<Bytes>& ranges,
                                       absl::Time deadline, Waiting waiting) {
  return requests_.Acquire(device, ranges, deadline, waiting);
}

void Session::Run() {
  absl::Duration retry = kFirstRetry;
  for (;;) {
    const absl::Status status = RunConnection();
    if (EndsSession(status)) return;
    // A connection that came about starts the waiting time anew.
    retry = status.ok() ? kFirstRetry : std::min(retry * 2, kLastRetry);
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), retry)) return;
  }
}

bool Session::EndsSession(const absl::Status& status) {
  bool connected;
  {
    absl::MutexLock lock(&mutex_);
    connected = connected_once_;
    if (stopping_) return true;
    if (connected && !absl::IsFailedPrecondition(status)) return false;
    ended_ = status;
  }
  requests_.OnEnded(status);
  shares_.OnEnded(status);
  if (connected) {
    Log(LogLevel::kError,
        absl::StrCat(status.message(),
                     "; this process goes on in the memory it has"));
  }
  return true;
}

absl::Status Session::RunConnection() {
  inbox_.Reset(/*new_epoch=*/false);
  METS_ASSIGN_OR_RETURN(
      std::unique_ptr<Connection> opened,
      Connection::Open(settings_.run_dir, [this](ipc::Fds fds) {
        OnDescriptors(std::move(fds));
      }));
  std::shared_ptr<Connection> connection = std::move(opened);
  v1::Hello hello;
  bool first;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return absl::UnavailableError("stopping");
    first = !connected_once_;
    if (!first) hello.set_previous_token(token_);
  }
  hello.set_protocol_version(kProtocolVersion);
  hello.set_job(settings_.job);
  hello.set_program(settings_.program);
  hello.set_limit_bytes(settings_.limit.count());
  hello.set_guarantee_bytes(settings_.guarantee.count());
  hello.set_priority(settings_.priority);
  hello.set_weight(settings_.weight);
  hello.set_reconnect(!first);
  METS_ASSIGN_OR_RETURN(v1::Welcome welcome,
                        connection->Handshake(std::move(hello)));
  const uint64_t old_epoch = epoch_.exchange(welcome.epoch());
  const bool new_epoch = !first && old_epoch != welcome.epoch();
  if (!first) {
    METS_RETURN_IF_ERROR(Resume(*connection, new_epoch, old_epoch));
  }
  const uint64_t generation = ++generation_;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return absl::UnavailableError("stopping");
    token_ = connection->token();
    welcome_ = std::move(welcome);
    connection_ = connection;
    connected_once_ = true;
  }
  SendSnapshots(first);
  requests_.OnOpen(generation);
  shares_.OnOpen(epoch());
  v1::DaemonMessage message;
  absl::Status ended;
  while (ended.ok() && connection->Read(&message)) {
    if (message.has_bye() && !message.bye().restarting()) {
      ended = absl::FailedPreconditionError(absl::StrCat(
          "metsd has ended the session: ", message.bye().reason()));
    }
    Dispatch(std::move(message));
  }
  OnBroken();
  return ended;
}

absl::Status Session::Resume(Connection& connection, bool new_epoch,
                             uint64_t old_epoch) {
  if (new_epoch) {
    extents_.Reset();
    inbox_.Reset(/*new_epoch=*/true);
    for (Device* device : Devices()) device->BeginEpoch(old_epoch);
  }
  size_t waiting = 0;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [id, attachment] : attachments_) {
      if (attachment.device == nullptr) continue;
      v1::ClientMessage message;
      message.mutable_attach_device()->set_device(id);
      message.mutable_attach_device()->set_ops_seen(attachment.ops_seen);
      connection.Send(std::move(message));
      ++waiting;
    }
  }
  v1::DaemonMessage message;
  while (waiting > 0) {
    if (!connection.Read(&message)) {
      return absl::UnavailableError("the stream broke");
    }
    if (message.has_bye()) {
      return absl::FailedPreconditionError(
          absl::StrCat("metsd refuses this process: ", message.bye().reason()));
    }
    if (!message.has_device_ready()) {
      Dispatch(std::move(message));
      continue;
    }
    if (!message.device_ready().error().empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("metsd: ", message.device_ready().error()));
    }
    --waiting;
  }
  return absl::OkStatus();
}

void Session::SendSnapshots(bool first) {
  const std::vector<Device*> devices = Devices();
  for (Device* device : devices) {
    device->SendSnapshot(device == devices.back());
  }
  if (first || !devices.empty()) return;
  v1::ClientMessage nothing;
  nothing.mutable_snapshot()->set_epoch(epoch());
  nothing.mutable_snapshot()->set_last(true);
  Send(std::move(nothing));
}

void Session::OnDescriptors(ipc::Fds fds) {
  std::vector<uint64_t> extents;
  if (fds.kind == ipc::FdKind::kExtent) extents = fds.ids;
  inbox_.Put(std::move(fds));
  for (uint64_t id : extents) extents_.Announce(id);
}

void Session::OnBroken() {
  {
    absl::MutexLock lock(&mutex_);
    connection_ = nullptr;
  }
  ++generation_;
  for (Device* device : Devices()) {
    device->Mute();
    device->gate().Open();
  }
  requests_.OnBroken();
  shares_.OnBroken();
  inbox_.Close();
  importer_.AwaitEnd();
  orders_->Abandon();
}

void Session::Dispatch(v1::DaemonMessage message) {
  switch (message.message_case()) {
    case v1::DaemonMessage::kGranted:
      return requests_.OnGranted(message.granted());
    case v1::DaemonMessage::kShareAnswer:
      return shares_.OnAnswer(message.share_answer());
    case v1::DaemonMessage::kDenied:
      return requests_.OnDenied(message.denied());
    case v1::DaemonMessage::kDeviceReady:
      return OnDeviceReady(message.device_ready());
    case v1::DaemonMessage::kSetLimits:
      return OnSetLimits(message.set_limits());
    case v1::DaemonMessage::kRegrant:
      return OnRegrant(message.regrant());
    case v1::DaemonMessage::kGate:
      return OnGate(message.gate());
    case v1::DaemonMessage::kNotice:
      return Log(LogLevel::kNotice, message.notice().text());
    case v1::DaemonMessage::kRecord:
      return OnRecord(message.record());
    case v1::DaemonMessage::kWelcome:
    case v1::DaemonMessage::kBye:
    case v1::DaemonMessage::MESSAGE_NOT_SET:
      return;
    default:
      return orders_->Post(std::move(message));
  }
}

void Session::OnDeviceReady(const v1::DeviceReady& ready) {
  absl::MutexLock lock(&mutex_);
  Attachment& attachment = attachments_[ready.device()];
  attachment.ready = ready;
  attachment.answered = true;
}

void Session::OnSetLimits(const v1::SetLimits& limits) {
  absl::MutexLock lock(&mutex_);
  const auto it = attachments_.find(limits.device());
  if (it == attachments_.end()) return;
  Attachment& attachment = it->second;
  if (attachment.device == nullptr) {
    attachment.limits = limits;
  } else {
    Apply(limits, attachment.device.get());
  }
}

void Session::OnRecord(const v1::Record& record) {
  if (Device* device = FindDevice(Devices(), record.device())) {
    return device->OnRecord(record);
  }
  v1::ClientMessage message;
  v1::TraceChunk* chunk = message.mutable_trace_chunk();
  chunk->set_recording_id(record.recording_id());
  chunk->set_data(trace::FormatError("the process does not use the device"));
  chunk->set_last(true);
  Send(std::move(message));
}

void Session::OnRegrant(const v1::Regrant& regrant) {
  if (Device* device = FindDevice(Devices(), regrant.device())) {
    device->Regrant(regrant);
  }
}

void Session::OnGate(const v1::Gate& gate) {
  Device* device;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = attachments_.find(gate.device());
    if (it == attachments_.end()) return;
    device = it->second.device.get();
    if (device == nullptr) it->second.gate = gate;
  }
  if (device != nullptr) device->FollowGate(gate);
}

absl::StatusOr<Device*> Session::OpenDevice(std::string id, bool ops_seen) {
  FirstGate gate;
  absl::StatusOr<Device*> device = Attach(std::move(id), ops_seen, &gate);
  if (!device.ok() || !gate.order.has_value()) return device;
  (*device)->FollowGate(*gate.order);
  // Where the stream has broken meanwhile, the gate was opened before.
  if (generation_ != gate.generation) (*device)->gate().Revoke(*gate.order);
  return device;
}

absl::StatusOr<Device*> Session::Attach(std::string id, bool ops_seen,
                                        FirstGate* gate) {
  absl::MutexLock lock(&mutex_);
  if (!ended_.ok()) return ended_;
  const auto& known = welcome_.devices();
  if (id.empty() && !known.empty()) id = known[0];
  if (std::find(known.begin(), known.end(), id) == known.end()) {
    return absl::NotFoundError(absl::StrCat(
        "no device '", id, "'; metsd has: ", absl::StrJoin(known, ", ")));
  }
  Attachment& attachment = attachments_[id];
  if (attachment.device != nullptr) return attachment.device.get();
  attachment.ops_seen = ops_seen;
  attachment.answered = false;
  attachment.gate.reset();
  attachment.limits.reset();
  if (connection_ == nullptr) {
    return absl::UnavailableError("metsd is away; try again");
  }
  v1::ClientMessage message;
  message.mutable_attach_device()->set_device(id);
  message.mutable_attach_device()->set_ops_seen(ops_seen);
  connection_->Send(std::move(message));
  const auto answered = [this,
                         &attachment]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return attachment.answered || !ended_.ok() || connection_ == nullptr;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&answered), kOpenTimeout);
  if (!ended_.ok()) return ended_;
  if (!attachment.answered) {
    return absl::UnavailableError("metsd did not attach the device in time");
  }
  if (connection_ != nullptr) gate->order = attachment.gate;
  gate->generation = generation_;
  attachment.gate.reset();
  return MakeDevice(attachment);
}

absl::StatusOr<Device*> Session::MakeDevice(Attachment& attachment) {
  const v1::DeviceReady& ready = attachment.ready;
  if (attachment.device != nullptr) return attachment.device.get();
  if (!ready.error().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("metsd: ", ready.error()));
  }
  if (!settings_.phantom.is_zero() && ready.kind() != "host") {
    return absl::FailedPreconditionError(
        absl::StrCat("METS_PHANTOM_EVICTION is for host devices; ",
                     ready.device(), " is a ", ready.kind(), " device"));
  }
  METS_ASSIGN_OR_RETURN(std::unique_ptr<MapDriver> driver,
                        OpenMap(ready.kind(), ready.device()));
  char* begin = driver->region_begin();
  char* end = driver->region_end();
  DeviceOptions options;
  options.id = ready.device();
  options.job = settings_.job;
  options.kind = ready.kind();
  options.pool = Bytes(static_cast<int64_t>(ready.pool_bytes()));
  options.limit = Bytes(static_cast<int64_t>(welcome_.limit_bytes()));
  options.wait = settings_.wait;
  options.gated = !attachment.ops_seen;
  options.phantom = settings_.phantom;
  for (uint64_t size : ready.chunk_classes()) {
    options.chunk_classes.push_back(Bytes(static_cast<int64_t>(size)));
  }
  METS_ASSIGN_OR_RETURN(
      attachment.device,
      Device::Create(*this, std::move(driver), std::move(options)));
  if (attachment.limits.has_value()) {
    Apply(*attachment.limits, attachment.device.get());
  }
  // The host's accesses to a GPU's addresses are errors of the program.
  if (ready.kind() == "host") {
    METS_RETURN_IF_ERROR(ServeFaultsOf(begin, end, attachment.device.get()));
  }
  return attachment.device.get();
}

std::vector<Device*> Session::Devices() {
  absl::MutexLock lock(&mutex_);
  std::vector<Device*> devices;
  for (auto& [id, attachment] : attachments_) {
    if (attachment.device != nullptr) {
      devices.push_back(attachment.device.get());
    }
  }
  return devices;
}

bool Session::PollGatesUntilReport() {
  const std::vector<Device*> devices = Devices();
  const bool gating =
      std::any_of(devices.begin(), devices.end(),
                  [](Device* device) { return device->gate().gating(); });
  const int polls = gating ? kGatePolls : 1;
  for (int i = 0; i < polls; ++i) {
    for (Device* device : devices) device->gate().Poll();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_),
                                kReportPeriod / polls)) {
      return false;
    }
  }
  return true;
}

void Session::Report() {
  for (int round = 0;; ++round) {
    for (Device* device : Devices()) {
      device->ReportSteps();
      for (int i = 0; i < kExchanges && device->ExchangeChunks(); ++i) {
      }
      if (device->tight()) {
        device->ReportChanges(ReportScope::kAll);
      } else if (round % kRelaxedPeriods == 0) {
        device->ReportChanges(round / kRelaxedPeriods % kLastUseReports == 0
                                  ? ReportScope::kLastingUses
                                  : ReportScope::kLasting);
      }
      device->SendRecording();
    }
    if (!PollGatesUntilReport()) return;
  }
}

}  // namespace mets::client
