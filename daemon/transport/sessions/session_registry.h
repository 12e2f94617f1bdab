// SessionRegistry: which process is which session, and how to reach it.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_SESSION_REGISTRY_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_SESSION_REGISTRY_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "daemon/core/ports.h"
#include "daemon/transport/sessions/client_stream.h"
#include "daemon/transport/sockets/fd_connection.h"
#include "mets/v1/session.pb.h"

namespace mets::transport {

// The user id that the kernel shows for users it cannot name (user
// namespaces): strangers share it, so it is never a shared domain.
inline constexpr uid_t kOverflowUid = 65534;

using core::ProcessIdentity;

// A session and its process; also as recorded by an earlier daemon.
struct SessionIdentity {
  SessionId session;
  ProcessIdentity process;
};

// A session of an earlier daemon that goes on in this one.
struct KeptIdentity {
  SessionIdentity identity;
  std::string job;
};

// How to reach a session.
struct Route {
  std::shared_ptr<ClientStream> stream;
  std::shared_ptr<FdConnection> descriptors;
};

// A session that uses a device.
struct JobOnDevice {
  SessionId session;
  std::string device;
};

// What a listener fixes for the sessions that come through it.
struct ListenerRule {
  std::string job;  // Empty: what the session says.
  DomainId domain;  // None: by uid.
  core::Caps caps;  // Where they say something, they come before the others.
};

// The caps of all domains and of single users.
struct CapRules {
  core::Caps all;
  absl::flat_hash_map<uid_t, core::Caps> by_uid;
};

struct RegistryOptions {
  SessionId first_session;  // Ids of this daemon start here.
  // Sessions of an earlier daemon whose processes live.
  std::vector<SessionIdentity> expected;
  // The same, where the core has them already, as lost ones.
  std::vector<KeptIdentity> kept;
  // Through one listener: pods and tenants may well have the same uid.
  int max_sessions_per_uid = 1024;
  CapRules caps;
  // By the listeners' numbers; those beyond have no rule.
  std::vector<ListenerRule> listeners;
};

// Turns connections, streams and ends of processes into the core's
// SessionOpened, SessionLost, SessionResumed and SessionEnded.
//
// A session goes: admitted (its descriptor socket has a token) → open (a
// stream has presented the token) ⇄ lost (no stream) → ended (its process has
// ended; nothing else ends it once it was open). A process that comes back on
// a new descriptor socket keeps its session by naming its previous token; after
// a restart of the daemon that keeps sessions, by being the same process.
//
// Thread-safe; inputs are posted under the registry's lock, so that their order
// is that of the events. The sink is borrowed.
class SessionRegistry {
 public:
  SessionRegistry(RegistryOptions options, core::InputSink& sink);

  // --- from the descriptor socket ---------------------------------------

  // A process has said Hello on `connection`. Returns the token of its new
  // session. RESOURCE_EXHAUSTED when its uid has too many; but a process that
  // has one may have a second token, to come back with.
  absl::StatusOr<std::string> Admit(uint64_t connection,
                                    const ProcessIdentity& process,
                                    std::shared_ptr<FdConnection> descriptors,
                                    size_t listener = 0);

  // The socket has ended. True when the session goes on and the end of its
  // process must be reported later.
  bool ConnectionClosed(uint64_t connection);

  // False once another connection has taken over its session.
  bool Knows(uint64_t connection) const;

  void ProcessEnded(uint64_t connection);
  // Of an expected or kept session; one that has a connection by now is left to
  // ProcessEnded.
  void ExpectedProcessEnded(SessionId session);

  // --- from streams --------------------------------------------------------

  // A stream's Hello: finds its session and tells the core.
  // UNAUTHENTICATED for a token that is not known, FAILED_PRECONDITION for an
  // open session without `reconnect` or one that was refused,
  // RESOURCE_EXHAUSTED for a new session beyond what its uid may have.
  absl::StatusOr<SessionId> Attach(const v1::Hello& hello,
                                   std::shared_ptr<ClientStream> stream);

  // Posts what a stream says, if it still is the session's stream.
  void PostFrom(const ClientStream* stream, SessionId session,
                core::Input input);

  // The stream has ended. False when the session has another one.
  bool Detach(const ClientStream* stream, SessionId session);

  // --- to sessions -----------------------------------------------------------

  // The way to a session; empty stream when it has none or has not been
  // welcomed: what was decided before that was meant for an earlier stream.
  Route Find(SessionId session) const;
  // The same for a Welcome, which opens the way if it is the last one owed.
  Route Welcome(SessionId session);
  // The same for a refusal, which closes it for good.
  Route Refuse(SessionId session);

  // A session has got the use of a device.
  void NoteDevice(SessionId session, const std::string& device);
  // The only session of the job on the device (empty: on any). NOT_FOUND when
  // there is none, FAILED_PRECONDITION when there are several; the text says
  // what there is.
  absl::StatusOr<JobOnDevice> FindJob(const std::string& job,
                                      const std::string& device) const;

  // The session's descriptor socket; 0 when it is not known.
  uint64_t ConnectionOf(SessionId session) const;

  // For sessions that open from now on.
  void SetCaps(CapRules caps);

  std::vector<SessionIdentity> Identities() const;
  // Every open stream.
  std::vector<std::shared_ptr<ClientStream>> Streams() const;

 private:
  enum class Phase { kAdmitted, kOpen, kRefused };
  struct Record {
    SessionId session;
    ProcessIdentity process;
    Phase phase = Phase::kAdmitted;
    std::string token;
    uint64_t connection = 0;  // 0: it is kept, and not back yet.
    size_t listener = 0;
    std::shared_ptr<FdConnection> descriptors;
    std::shared_ptr<ClientStream> stream;
    std::string job;
    std::vector<std::string> devices;  // That it uses.
    // Welcomes that the core still owes: one for each SessionOpened or
    // SessionResumed. Until the last one, actions are for an earlier stream.
    int welcomes_owed = 0;
  };

  // Whether the uid may have so many more sessions.
  absl::Status CheckCount(uid_t uid, size_t listener, int more) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayComeBack(const ProcessIdentity& process) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts in what the operator has said about the session.
  void ApplyRules(const Record& record, core::SessionOpened* opened) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Record* FindRecord(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Record* FindConnection(uint64_t connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Open(const v1::Hello& hello, Record& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resume(Record& record, std::shared_ptr<ClientStream> stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Record* Previous(const v1::Hello& hello, const Record& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Record* Kept(const v1::Hello& hello, const ProcessIdentity& process)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Record& TakeOver(Record& previous, const Record& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SessionId FindExpected(const ProcessIdentity& process) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(const Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  core::InputSink& sink_;
  const int max_sessions_per_uid_;
  const std::vector<ListenerRule> listeners_;
  mutable absl::Mutex mutex_;
  CapRules caps_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_session_ ABSL_GUARDED_BY(mutex_);
  std::vector<SessionIdentity> expected_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<SessionId, std::unique_ptr<Record>> records_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, SessionId> by_token_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, SessionId> by_connection_
      ABSL_GUARDED_BY(mutex_);
  // Sessions by uid and listener.
  absl::flat_hash_map<std::pair<uid_t, size_t>, int> counts_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_SESSION_REGISTRY_H_
