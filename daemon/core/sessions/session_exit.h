// How sessions fall silent, are refused, and end.
#ifndef METS_DAEMON_CORE_SESSIONS_SESSION_EXIT_H_
#define METS_DAEMON_CORE_SESSIONS_SESSION_EXIT_H_

#include <string>

#include "daemon/core/chunks/retirement.h"
#include "daemon/core/state.h"

namespace mets::core {

// The session gets no messages from now on: its requests go (unanswered), its
// overdraft token as well, and its orders count as not followed. Slots of its
// Evict orders stay its own, because it may still be writing: until its
// snapshot says what they hold, or it ends.
void Silence(State& state, Session& session);

// Silences a session that broke the rules and tells it why. What it holds
// stays its own until its process ends.
void RefuseSession(State& state, Session& session, std::string reason);

// Gives back everything the session has, and removes it.
void EndSession(State& state, Retirement& retirement, Session& session);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SESSIONS_SESSION_EXIT_H_
