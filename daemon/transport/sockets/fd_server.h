// FdServer: serves fd.sock and watches the processes behind the sessions.
#ifndef METS_DAEMON_TRANSPORT_SOCKETS_FD_SERVER_H_
#define METS_DAEMON_TRANSPORT_SOCKETS_FD_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/unique_fd.h"
#include "common/ipc/descriptor_channel.h"
#include "daemon/transport/admin/process_ender.h"
#include "daemon/transport/sessions/session_registry.h"
#include "daemon/transport/sockets/event_loop.h"
#include "daemon/transport/sockets/fd_connection.h"

namespace mets::transport {

// A process of an earlier daemon's session, expected or kept.
struct WatchedProcess {
  SessionId session;
  UniqueFd pidfd;
};

struct FdServerOptions {
  Epoch epoch;
  // A peer that has not said Hello by then is dropped.
  absl::Duration hello_timeout = absl::Seconds(5);
  // Peers that may be connected without having said Hello.
  size_t max_silent_peers = 256;
  size_t max_silent_peers_per_uid = 64;  // Through one listener.
  // Told the path of a listener whose socket's file somebody has removed.
  std::function<void(const std::string&)> on_lost;
  // Whether a user who comes through such a listener may open a stream, too.
  std::function<absl::Status(size_t, uid_t)> check_room;
  // Makes such a listener anew; called by the server's thread until it does not
  // fail.
  std::function<absl::StatusOr<ipc::DescriptorListener>(size_t)> listen_anew;
};

// Accepts connections from several sockets, which are numbered, checks who is
// there, gives out tokens, takes acknowledgements and sees processes end. One
// thread does all of it and never blocks on a peer: one that talks nonsense
// loses its connection, one that says nothing loses it after a while.
//
// The registry and the clock are borrowed. Stop (or the destructor) ends the
// thread and closes every connection.
class FdServer {
 public:
  static absl::StatusOr<std::unique_ptr<FdServer>> Create(
      FdServerOptions options, std::vector<ipc::DescriptorListener> listeners,
      std::vector<WatchedProcess> expected, SessionRegistry& registry,
      const Clock& clock);
  ~FdServer();

  void Start();
  void Stop();

  // Whether the thread does something for a caller within this time. Not from
  // the thread itself.
  bool AnswersWithin(absl::Duration time);

  // Asks the sessions' processes to end, and kills those that live after
  // `grace`. Thread-safe; returns before it is done.
  void EndProcesses(std::vector<SessionId> sessions, absl::Duration grace);

 private:
  struct Connection {
    std::shared_ptr<FdConnection> channel;  // Null: the socket has ended.
    ipc::Peer peer;
    size_t listener = 0;  // That it came through.
    absl::Time accepted;
    bool admitted = false;
  };

  FdServer(FdServerOptions options,
           std::vector<ipc::DescriptorListener> listeners,
           std::unique_ptr<EventLoop> loop, SessionRegistry& registry,
           const Clock& clock);

  absl::Status WatchExpected(std::vector<WatchedProcess> expected);
  absl::Status WatchListener(size_t number);
  bool Renew(size_t number);
  void AcceptAll(size_t number);
  void Adopt(ipc::DescriptorChannel channel, size_t listener);
  bool TooManySilent(uid_t uid, size_t listener) const;
  void OnSocket(uint64_t id);
  absl::Status ReadHello(uint64_t id, Connection& connection);
  absl::Status Identify(Connection& connection, UniqueFd sent_pidfd,
                        ProcessIdentity* process);
  void OnProcessEnd(uint64_t id);
  // Null when the session is not known.
  const UniqueFd* FindPidfd(SessionId session) const;
  // The socket is over; the process may be watched further.
  void CloseSocket(uint64_t id);
  void Drop(uint64_t id);
  void OnTick();

  const FdServerOptions options_;
  std::vector<ipc::DescriptorListener> listeners_;
  SessionRegistry& registry_;
  const Clock& clock_;
  // What follows belongs to the loop's thread.
  uint64_t next_id_ = 1;
  std::set<size_t> resting_;  // Listeners that are not watched now.
  std::set<size_t> lost_;     // That nobody finds.
  absl::flat_hash_map<uint64_t, std::unique_ptr<Connection>> connections_;
  absl::flat_hash_map<SessionId, UniqueFd> expected_;
  ProcessEnder ender_;
  std::unique_ptr<EventLoop> loop_;  // Last: stopped before the rest goes.
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SOCKETS_FD_SERVER_H_
