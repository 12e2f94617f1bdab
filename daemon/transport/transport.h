// Transport: everything between the core and the other processes.
#ifndef METS_DAEMON_TRANSPORT_TRANSPORT_H_
#define METS_DAEMON_TRANSPORT_TRANSPORT_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "daemon/core/ports.h"
#include "daemon/transport/admin/admin_service.h"
#include "daemon/transport/admin/event_streams.h"
#include "daemon/transport/admin/recordings.h"
#include "daemon/transport/sessions/session_registry.h"
#include "daemon/transport/sessions/session_service.h"
#include "daemon/transport/sockets/fd_server.h"
#include "daemon/transport/sockets/socket_acceptor.h"
#include "daemon/transport/sockets/socket_files.h"
#include "daemon/transport/sockets/stream_listener.h"

namespace mets::transport {

// Sockets that listen already, bound by somebody else (systemd); those that are
// empty the transport binds itself.
struct PassedSockets {
  UniqueFd fd, session, admin;
};

struct TransportOptions {
  std::string run_dir;
  // More sockets for sessions, in directories of their own that exist: who can
  // reach such a directory may use it. What they fix is in registry.listeners,
  // behind a rule for the run directory's.
  std::vector<std::string> listener_dirs;
  PassedSockets passed;
  Epoch epoch;
  std::string version;  // Of the daemon, for people.
  SocketAccess session_access;
  SocketAccess admin_access;
  RegistryOptions registry;
  // Pidfds of registry.expected.
  std::vector<WatchedProcess> expected;
  absl::Duration hello_timeout = absl::Seconds(5);
  size_t outbox_capacity = 4096;
  // Told the path of a socket whose file somebody has removed, and once it is
  // there again. By any thread.
  std::function<void(const std::string&)> on_lost, on_renewed;
};

// Serves fd.sock and session.sock for clients and admin.sock for operators,
// posts what they say and carries out the core's actions for them.
//
// All borrowed objects must outlive the transport. Perform is called by one
// thread; the other calls by the owner's.
class Transport : public core::SessionPort, public core::OperatorPort {
 public:
  Transport(TransportOptions options, core::InputSink& sink,
            const core::DescriptorSource& descriptors,
            const core::StatusSource& status, core::EventLog& events,
            const Clock& clock);
  ~Transport() override;

  // Binds the sockets and begins to serve. An error names the path and says
  // what to do; nothing is left behind then.
  absl::Status Start();

  // Lets the streams take what is queued for them (at most `grace`), then
  // closes everything and removes the sockets.
  void Stop(absl::Duration grace);

  void Perform(core::SessionAction action) override;
  void Perform(core::OperatorAction action) override;

  void SetCaps(CapRules caps) { registry_.SetCaps(std::move(caps)); }
  // Whether the descriptor sockets' thread answers.
  bool AnswersWithin(absl::Duration time) {
    return fd_server_->AnswersWithin(time);
  }

  SocketPaths paths() const { return paths_; }
  std::vector<SessionIdentity> Identities() const {
    return registry_.Identities();
  }
  // Clients that lost their stream because they did not read it.
  int64_t unresponsive_total() const {
    return session_service_.unresponsive_total();
  }

 private:
  // The descriptor socket of the run directory (0) or of a listener.
  absl::StatusOr<ipc::DescriptorListener> ListenForSessions(
      size_t number) const;
  absl::StatusOr<std::vector<ipc::DescriptorListener>> Listen();
  // The sockets of streams, without that of the run directory if it was passed.
  std::vector<SocketPlace> SessionPlaces() const;
  absl::Status StartServers();
  // Serves at what was passed and at the places.
  absl::StatusOr<std::unique_ptr<SocketAcceptor>> Accept(
      UniqueFd passed, const std::vector<SocketPlace>& places,
      grpc::Server& server) const;

  void Handle(const core::Welcome& action);
  void Handle(const core::Refuse& action);
  void Handle(const core::DeviceReady& action);
  void Handle(const core::Grant& action);
  void Handle(const core::ShareAnswer& action);
  void Handle(const core::EvictOrder& action);
  void Handle(const core::PlanOrder& action);
  void Handle(const core::ForgetOrder& action);
  void Handle(const core::SendBye& action);
  void Handle(const core::JobLimitSet& action);
  template <typename T>
  void Handle(const T& action);  // Those that are only a message.
  // A message after the descriptors that it needs.
  template <typename T>
  void SendAfter(const Route& route, ipc::FdKind kind,
                 std::vector<OutgoingFd> fds, const T& action);
  // The chunks that the session has not yet go first.
  template <typename T>
  void SendWithChunks(const T& action);
  // Orders with slots: the extents that the session has not yet go first.
  template <typename T>
  void SendWithExtents(const T& action);

  TransportOptions options_;
  const SocketPaths paths_;
  const bool session_passed_;
  const core::DescriptorSource& descriptors_;
  const Clock& clock_;
  SessionRegistry registry_;
  Recordings recordings_;
  EventStreams event_streams_;
  SessionService session_service_;
  AdminService admin_service_;
  std::unique_ptr<FdServer> fd_server_;
  std::unique_ptr<grpc::Server> session_server_;
  std::unique_ptr<grpc::Server> admin_server_;
  // Before the servers go.
  std::unique_ptr<SocketAcceptor> session_acceptor_;
  std::unique_ptr<SocketAcceptor> admin_acceptor_;
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_TRANSPORT_H_
