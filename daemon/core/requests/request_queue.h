// RequestQueue: the requests of one device that have no answer yet.
#ifndef METS_DAEMON_CORE_REQUESTS_REQUEST_QUEUE_H_
#define METS_DAEMON_CORE_REQUESTS_REQUEST_QUEUE_H_

#include <map>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/requests/overdraft.h"

namespace mets::core {

// What was ordered back for a request so far.
struct Tried {
  Bytes cached;
  Bytes buffers;
  int searches = 0;
};

// One Acquire on its way to an answer.
struct Request {
  uint64_t number = 0;  // Age: given by the queue, ascending, from 1.
  SessionId session;
  RequestId id;
  int priority = 0;
  std::vector<Bytes> ranges;  // Rounded up to the smallest chunk class.
  Bytes total;                // Of the ranges.
  uint64_t op = 0;            // Of the session.
  bool overdraft = false;
  bool pinned = false;  // Its op has pinned buffers already.
  bool fewest_chunks = false;
  bool has_token = false;  // Of overdraft: one count is this request's.
  absl::Time token_since;  // Since when.
  bool no_wait = false;    // Only what is free, cached or on its way.
  bool hopeful = false;    // Of no_wait: what it lacks is on its way.
  bool waited = false;     // It was not granted at once.
  Tried tried;
  bool noted = false;      // That it waits for long.
  bool held_back = false;  // It was, because moves are paced.
  absl::Time arrived;
  absl::Time deadline;

  // Assembling: its memory is reserved, some of it still being created.
  bool assembling = false;
  std::vector<ChunkId> chunks;
  std::vector<uint32_t> range_chunks;
  int creating = 0;

  OpOfSession asker() const { return {session, op}; }
};

// Not thread-safe. Requests stay at their address until they are removed.
class RequestQueue {
 public:
  Request& Add(Request request);
  void Remove(uint64_t number);
  // Null when there is none.
  Request* Find(SessionId session, RequestId id);
  Request* Find(uint64_t number);

  // Those that wait (not assembling): those of `first`, then those that wait
  // with buffers pinned, then by priority, then by age.
  std::vector<Request*> Waiting(const OpOfSession& first);
  // All of a session, by age.
  std::vector<Request*> OfSession(SessionId session);
  size_t CountOf(SessionId session) const;
  // How many of a session wait.
  int WaitingOf(SessionId session) const;
  const std::map<uint64_t, Request>& all() const { return requests_; }

  // The earliest deadline of a waiting request; InfiniteFuture without one.
  absl::Time NextDeadline() const;

 private:
  std::map<uint64_t, Request> requests_;
  uint64_t last_ = 0;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_REQUESTS_REQUEST_QUEUE_H_
