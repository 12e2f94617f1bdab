// ShareIntake: sessions publish memory, attach what others have published, and
// detach it.
#ifndef METS_DAEMON_CORE_SHARES_SHARE_INTAKE_H_
#define METS_DAEMON_CORE_SHARES_SHARE_INTAKE_H_

#include "daemon/core/state.h"

namespace mets::core {

// A name belongs to a domain and a device; what it stands for never changes,
// and nobody of another domain sees it. A share's bytes are counted once, for
// the job of one of its holders: the publisher, then whoever came first.
//
// Each input is answered exactly once. What no client can have asked for by
// mistake (memory that is not its own) refuses the session.
//
// Not thread-safe. Borrows the state.
class ShareIntake {
 public:
  explicit ShareIntake(State* state) : state_(*state) {}

  void OnPublish(const PublishShare& input);
  void OnAttach(const AttachShare& input);
  void OnDetach(const DetachShare& input);

 private:
  // Null, and it has been answered or refused, when it must not use the device.
  template <typename Input>
  Session* Admit(const Input& input, size_t* index);
  // "" when the session has all of these chunks, once each.
  std::string ChunkFault(const PublishShare& input, const ChunkLedger& ledger,
                         SessionId holder) const;
  // OK when it may be published.
  ShareAnswer Check(const PublishShare& input, const Session& session,
                    size_t index);
  ShareAnswer Check(const AttachShare& input, const Session& session,
                    const Share* share, size_t index) const;
  void Publish(const PublishShare& input, Session& session, size_t index);
  void SendShare(size_t index, const Share& share, ShareAnswer answer);

  State& state_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SHARES_SHARE_INTAKE_H_
