// Notes: events made from the core's state. Each does nothing where
// CoreConfig::events is off.
#ifndef METS_DAEMON_CORE_EVENTS_NOTES_H_
#define METS_DAEMON_CORE_EVENTS_NOTES_H_

#include <string>

#include "daemon/core/state.h"

namespace mets::core {

// Something about a job, on one device; the caller adds the rest.
Event JobEvent(const State& state, EventKind kind, const Job& job,
               size_t device);

// Something about a job on a device.
void NoteDevice(State& state, EventKind kind, const Job& job, size_t device,
                const std::string& text = "");
// The same for a process, on every device that it uses.
void NoteSession(State& state, EventKind kind, const Session& session,
                 const std::string& text = "");
void NoteLimit(State& state, const Job& job);

// An operator's command on a job; `text`: "paused 'bert'".
void NoteCommand(State& state, const std::string& device,
                 const std::string& job, const std::string& text);

// A request that had to wait, or is denied with `text`.
void NoteRequest(State& state, EventKind kind, const Job& job, size_t device,
                 const Request& request, const std::string& text = "");

// What left by an order to evict.
struct LeftBuffers {
  int64_t count = 0;
  Bytes bytes;
  Bytes copied;

  void Add(const Order::Candidate& candidate);
};
void NoteEvicted(State& state, const Session& session, const Order& order,
                 const LeftBuffers& left);
// A report has come: notes bursts of restores, and of a plan's evictions, that
// are over.
void NoteMoves(State& state, Session& session, size_t device);

// What the session's job has done with a share.
void NoteShare(State& state, EventKind kind, const Session& session,
               size_t device, const Share& share);

// The device's jobs compute in another way than before.
void NoteMode(State& state, size_t device, SharingMode before);
// So much of a device, or of swap space, goes back; nothing for no bytes.
void NoteReturned(State& state, const std::string& device, Bytes bytes);
// The turns that have ended.
void NoteTurns(State& state);
// `earlier`: steps that were known before a report of the session.
void NoteSteps(State& state, const Session& session, size_t device,
               int64_t earlier, absl::Duration since_begin);
// A plan without places is the end of the one before.
void NotePlan(State& state, const Session& session, size_t device,
              const PlanOrder& plan);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_EVENTS_NOTES_H_
