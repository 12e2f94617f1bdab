// Overdraft: the token of a device that ops with an unknown need take.
#ifndef METS_DAEMON_CORE_REQUESTS_OVERDRAFT_H_
#define METS_DAEMON_CORE_REQUESTS_OVERDRAFT_H_

#include <cstdint>

#include "common/base/ids.h"

namespace mets::core {

// An op of a session, by the number that the session gave it.
struct OpOfSession {
  SessionId session;
  uint64_t op = 0;

  friend bool operator==(const OpOfSession& a, const OpOfSession& b) {
    return a.session == b.session && a.op == b.op;
  }
};

// One token; the op that has it may take it again and gives it back as often.
// Not thread-safe.
class Overdraft {
 public:
  // Its session is none when nobody has it.
  const OpOfSession& holder() const { return holder_; }
  bool held() const { return holder_.session.ok(); }

  // True when `op` has the token now (once more).
  bool TryTake(const OpOfSession& op) {
    if (held() && !(holder_ == op)) return false;
    holder_ = op;
    ++count_;
    return true;
  }

  // Gives one count back; nothing happens when no op of `session` has it.
  void GiveBack(SessionId session) {
    if (!held() || holder_.session != session) return;
    if (--count_ == 0) holder_ = OpOfSession();
  }

  // Gives back all that an op of `session` has.
  void Drop(SessionId session) {
    if (holder_.session != session) return;
    holder_ = OpOfSession();
    count_ = 0;
  }

 private:
  OpOfSession holder_;
  int count_ = 0;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_REQUESTS_OVERDRAFT_H_
