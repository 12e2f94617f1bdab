#include "daemon/transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "daemon/transport/sessions/to_client.h"

namespace mets::transport {
namespace {

// "No message exceeds 1 MiB", and some room for a peer that counts otherwise.
constexpr int kMaxMessage = (1 << 20) + (64 << 10);

// Of a listener's sockets: who reaches its directory may connect.
const SocketAccess kOpenToAll = {0666, std::nullopt};

// More than a user can have sessions (RegistryOptions), and no more than leaves
// most of the descriptors to others.
size_t MaxConnectionsPerUser() {
  rlimit most = {};
  getrlimit(RLIMIT_NOFILE, &most);
  return std::min<rlim_t>(1280, most.rlim_cur / 4);
}

std::unique_ptr<grpc::Server> MakeServer(grpc::Service& service,
                                         int calls_per_connection) {
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(kMaxMessage);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             calls_per_connection);
  return builder.BuildAndStart();
}

SessionServiceOptions ServiceOptions(const TransportOptions& options) {
  SessionServiceOptions service;
  service.epoch = options.epoch;
  service.hello_timeout = options.hello_timeout;
  service.outbox_capacity = options.outbox_capacity;
  return service;
}

// A descriptor of our own: sending may happen later, and never depends on what
// the source does until then.
absl::StatusOr<UniqueFd> Duplicate(absl::StatusOr<int> fd) {
  METS_RETURN_IF_ERROR(fd.status());
  UniqueFd copy(fcntl(*fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.ok()) return ErrnoToStatus(errno, "duplicate a descriptor");
  return copy;
}

// Without its descriptors a client cannot follow; it reconnects.
void Fail(const Route& route, const absl::Status& status) {
  route.stream->Close(absl::ResourceExhaustedError(absl::StrCat(
      "metsd cannot pass descriptors to this client: ", status.message())));
}

}  // namespace

Transport::Transport(TransportOptions options, core::InputSink& sink,
                     const core::DescriptorSource& descriptors,
                     const core::StatusSource& status, core::EventLog& events,
                     const Clock& clock)
    : options_(std::move(options)),
      paths_(SocketsIn(options_.run_dir)),
      session_passed_(options_.passed.session.ok()),
      descriptors_(descriptors),
      clock_(clock),
      registry_(options_.registry, sink),
      recordings_(registry_),
      event_streams_(events),
      session_service_(ServiceOptions(options_), registry_, recordings_, clock),
      admin_service_(options_.epoch, options_.version, sink, status,
                     recordings_, event_streams_, clock) {}

Transport::~Transport() { Stop(absl::ZeroDuration()); }

std::vector<SocketPlace> Transport::SessionPlaces() const {
  std::vector<SocketPlace> places;
  if (!session_passed_) {
    places.push_back({paths_.session, options_.session_access});
  }
  for (const std::string& dir : options_.listener_dirs) {
    places.push_back({SocketsIn(dir).session, kOpenToAll});
  }
  return places;
}

absl::StatusOr<ipc::DescriptorListener> Transport::ListenForSessions(
    size_t number) const {
  if (number > 0) {
    return ipc::DescriptorListener::Listen(
        SocketsIn(options_.listener_dirs[number - 1]).fd, kOpenToAll.mode);
  }
  METS_RETURN_IF_ERROR(PrepareRunDir(options_.run_dir));
  METS_ASSIGN_OR_RETURN(
      ipc::DescriptorListener listener,
      ipc::DescriptorListener::Listen(paths_.fd, options_.session_access.mode));
  METS_RETURN_IF_ERROR(ApplyAccess(paths_.fd, options_.session_access));
  return listener;
}

absl::StatusOr<std::vector<ipc::DescriptorListener>> Transport::Listen() {
  std::vector<ipc::DescriptorListener> listeners;
  if (options_.passed.fd.ok()) {
    listeners.push_back(ipc::DescriptorListener::Adopt(
        std::move(options_.passed.fd), paths_.fd));
  }
  while (listeners.size() <= options_.listener_dirs.size()) {
    METS_ASSIGN_OR_RETURN(ipc::DescriptorListener listener,
                          ListenForSessions(listeners.size()));
    listeners.push_back(std::move(listener));
  }
  return listeners;
}

absl::Status Transport::Start() {
  METS_RETURN_IF_ERROR(PrepareRunDir(options_.run_dir));
  METS_ASSIGN_OR_RETURN(std::vector<ipc::DescriptorListener> listeners,
                        Listen());
  FdServerOptions fd_options;
  fd_options.epoch = options_.epoch;
  fd_options.hello_timeout = options_.hello_timeout;
  fd_options.on_lost = options_.on_lost;
  fd_options.listen_anew =
      [this](size_t number) -> absl::StatusOr<ipc::DescriptorListener> {
    METS_ASSIGN_OR_RETURN(ipc::DescriptorListener listener,
                          ListenForSessions(number));
    options_.on_renewed(listener.path());
    return listener;
  };
  fd_options.check_room = [this](size_t number, uid_t uid) {
    return session_acceptor_->CheckRoom(number, uid);
  };
  METS_ASSIGN_OR_RETURN(
      fd_server_,
      FdServer::Create(fd_options, std::move(listeners),
                       std::move(options_.expected), registry_, clock_));
  METS_RETURN_IF_ERROR(StartServers());
  fd_server_->Start();
  return absl::OkStatus();
}

absl::Status Transport::StartServers() {
  // A client has one stream: many in one connection would keep others' out.
  session_server_ = MakeServer(session_service_, /*calls_per_connection=*/1);
  admin_server_ = MakeServer(admin_service_, /*calls_per_connection=*/16);
  METS_ASSIGN_OR_RETURN(session_acceptor_,
                        Accept(std::move(options_.passed.session),
                               SessionPlaces(), *session_server_));
  std::vector<SocketPlace> admin;
  if (!options_.passed.admin.ok()) {
    admin.push_back({paths_.admin, options_.admin_access});
  }
  METS_ASSIGN_OR_RETURN(
      admin_acceptor_,
      Accept(std::move(options_.passed.admin), admin, *admin_server_));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SocketAcceptor>> Transport::Accept(
    UniqueFd passed, const std::vector<SocketPlace>& places,
    grpc::Server& server) const {
  std::vector<StreamListener> listeners;
  if (passed.ok())
    listeners.push_back(StreamListener::Adopt(std::move(passed)));
  for (const SocketPlace& place : places) {
    METS_ASSIGN_OR_RETURN(StreamListener listener,
                          StreamListener::Listen(place));
    listeners.push_back(std::move(listener));
  }
  return SocketAcceptor::Start(
      {MaxConnectionsPerUser(), options_.on_lost, options_.on_renewed},
      std::move(listeners), server);
}

void Transport::Stop(absl::Duration grace) {
  if (fd_server_ == nullptr) return;
  for (const std::shared_ptr<ClientStream>& stream : registry_.Streams()) {
    stream->Close(absl::UnavailableError("metsd has stopped"));
  }
  admin_service_.Abort();
  recordings_.Abort();
  event_streams_.Abort();
  session_service_.AwaitNoStreams(grace);
  fd_server_->Stop();  // It asks the acceptor.
  session_acceptor_ = nullptr;
  admin_acceptor_ = nullptr;
  const auto now = absl::ToChronoTime(absl::Now());
  if (session_server_ != nullptr) session_server_->Shutdown(now);
  if (admin_server_ != nullptr) admin_server_->Shutdown(now);
  session_server_ = nullptr;
  admin_server_ = nullptr;
  fd_server_ = nullptr;
}

void Transport::Perform(core::SessionAction action) {
  std::visit([this](const auto& a) { Handle(a); }, action);
}

void Transport::Perform(core::OperatorAction action) {
  if (const auto* done = std::get_if<core::CommandDone>(&action)) {
    admin_service_.Answer(*done);
  } else if (auto* end = std::get_if<core::EndProcesses>(&action)) {
    fd_server_->EndProcesses(std::move(end->sessions), end->grace);
  }
}

void Transport::Handle(const core::Welcome& action) {
  const Route route = registry_.Welcome(action.session);
  if (route.stream == nullptr) return;
  route.stream->Send(ToMessage(action, options_.epoch));
}

void Transport::Handle(const core::Refuse& action) {
  const Route route = registry_.Refuse(action.session);
  if (route.stream == nullptr) return;
  route.stream->Send(ToMessage(action, options_.epoch));
  route.stream->Close(absl::FailedPreconditionError(action.reason));
}

void Transport::Handle(const core::DeviceReady& action) {
  const Route route = registry_.Find(action.session);
  if (route.stream == nullptr) return;
  if (action.error.empty()) registry_.NoteDevice(action.session, action.device);
  route.stream->Send(ToMessage(action, options_.epoch));
}

template <typename T>
void Transport::SendAfter(const Route& route, ipc::FdKind kind,
                          std::vector<OutgoingFd> fds, const T& action) {
  // Also what comes without descriptors may name what was sent with others'.
  const absl::StatusOr<uint64_t> seq =
      route.descriptors->Send(kind, std::move(fds));
  if (!seq.ok()) return Fail(route, seq.status());
  route.stream->Send(ToMessage(action, options_.epoch, *seq));
}

template <typename T>
void Transport::SendWithChunks(const T& action) {
  const Route route = registry_.Find(action.session);
  if (route.stream == nullptr) return;
  std::vector<OutgoingFd> fds;
  for (const core::ChunkRef& chunk : action.new_to_session) {
    absl::StatusOr<UniqueFd> fd =
        Duplicate(descriptors_.ChunkDescriptor(chunk.id));
    if (!fd.ok()) return Fail(route, fd.status());
    fds.push_back({chunk.id.value(), chunk.size, *std::move(fd)});
  }
  SendAfter(route, ipc::FdKind::kChunk, std::move(fds), action);
}

void Transport::Handle(const core::Grant& action) { SendWithChunks(action); }

void Transport::Handle(const core::ShareAnswer& action) {
  SendWithChunks(action);
}

template <typename T>
void Transport::SendWithExtents(const T& action) {
  const Route route = registry_.Find(action.session);
  if (route.stream == nullptr) return;
  std::vector<OutgoingFd> fds;
  for (const core::ExtentRef& extent : action.new_to_session) {
    absl::StatusOr<UniqueFd> fd =
        Duplicate(descriptors_.ExtentDescriptor(extent.id));
    if (!fd.ok()) return Fail(route, fd.status());
    fds.push_back({extent.id.value(), extent.size, *std::move(fd)});
  }
  SendAfter(route, ipc::FdKind::kExtent, std::move(fds), action);
}

void Transport::Handle(const core::EvictOrder& action) {
  SendWithExtents(action);
}

void Transport::Handle(const core::PlanOrder& action) {
  SendWithExtents(action);
}

void Transport::Handle(const core::ForgetOrder& action) {
  const Route route = registry_.Find(action.session);
  if (route.stream == nullptr) return;
  SendAfter(route, ipc::FdKind::kChunk, {}, action);
}

void Transport::Handle(const core::SendBye& action) {
  const Route route = registry_.Find(action.session);
  if (route.stream == nullptr) return;
  route.stream->Send(ToMessage(action, options_.epoch));
  route.stream->Close(absl::UnavailableError(action.reason));
}

void Transport::Handle(const core::JobLimitSet& action) {
  core::CommandDone done;
  done.call = action.call;
  done.status = action.status;
  admin_service_.Answer(done);
}

template <typename T>
void Transport::Handle(const T& action) {
  const Route route = registry_.Find(action.session);
  if (route.stream == nullptr) return;
  route.stream->Send(ToMessage(action, options_.epoch));
}

}  // namespace mets::transport
