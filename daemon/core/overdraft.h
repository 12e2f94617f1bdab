// Overdraft: the token of a device that ops with an unknown need take.
#ifndef METS_DAEMON_CORE_OVERDRAFT_H_
#define METS_DAEMON_CORE_OVERDRAFT_H_

#include "common/base/ids.h"

namespace mets::core {

// One token; the session that has it may take it again and gives it back as
// often. Not thread-safe.
class Overdraft {
 public:
  // None when nobody has it.
  SessionId holder() const { return holder_; }

  // True when `session` has the token now (once more).
  bool TryTake(SessionId session) {
    if (holder_.ok() && holder_ != session) return false;
    holder_ = session;
    ++count_;
    return true;
  }

  // Gives one count back; nothing happens when `session` does not have it.
  void GiveBack(SessionId session) {
    if (holder_ != session || !session.ok()) return;
    if (--count_ == 0) holder_ = SessionId();
  }

  // Gives back all that `session` has.
  void Drop(SessionId session) {
    if (holder_ != session) return;
    holder_ = SessionId();
    count_ = 0;
  }

 private:
  SessionId holder_;
  int count_ = 0;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_OVERDRAFT_H_
