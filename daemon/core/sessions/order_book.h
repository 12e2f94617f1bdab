// OrderBook: orders that sessions have not answered yet.
#ifndef METS_DAEMON_CORE_SESSIONS_ORDER_BOOK_H_
#define METS_DAEMON_CORE_SESSIONS_ORDER_BOOK_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/events/event.h"
#include "daemon/core/id_counter.h"

namespace mets::core {

enum class OrderKind { kEvict, kTrim, kForget, kPlan };

struct Order {
  struct Candidate {
    BufferId buffer;
    SlotId slot;
    Bytes size;
    bool reused = false;  // The buffer had the slot before, clean.
  };

  OrderId id;
  SessionId session;
  OrderKind kind = OrderKind::kTrim;
  size_t device = 0;
  absl::Time due;       // When the session becomes unresponsive.
  bool late = false;    // It has.
  absl::Time issued;    // kEvict: since when, ...
  std::string for_job;  // ... for whom, ...
  EvictCause cause = EvictCause::kRequest;       // ... why, and ...
  absl::Time next_use = absl::InfiniteFuture();  // ... when needed again.
  Bytes target;                                  // kEvict, kTrim.
  Bytes released;                                // So far.
  std::vector<Candidate> candidates;             // kEvict.
  std::vector<ChunkId> chunks;                   // kForget.
  std::vector<ExtentId> extents;                 // kForget.

  // Bytes that the order still promises; none when it is late.
  Bytes coming() const;
};

// Not thread-safe. Orders stay at their address until they are removed.
class OrderBook {
 public:
  // Identifiers go on behind `last`.
  void Skip(OrderId last) { ids_.Skip(last); }
  // Gives the order its id.
  Order& Add(Order order);
  void Remove(OrderId id);
  // Null when `session` has no such order.
  Order* Find(SessionId session, OrderId id);
  const Order* Find(OrderId id) const;
  // Null when `session` has no order of this kind on the device.
  const Order* FindKind(SessionId session, OrderKind kind, size_t device) const;
  std::vector<Order> TakeSession(SessionId session);

  // Bytes promised by a session on a device.
  Bytes Coming(SessionId session, size_t device) const;
  // Bytes promised on a device.
  Bytes Coming(size_t device) const;

  // Marks orders that are overdue; their sessions.
  std::vector<SessionId> MarkLate(absl::Time now);
  bool HasLate(SessionId session) const;
  // InfiniteFuture without an order that may become late.
  absl::Time NextDue() const;
  const std::map<OrderId, Order>& all() const { return orders_; }

 private:
  using Orders = absl::InlinedVector<Order*, 2>;  // Mostly there is one.
  const Orders& OfSession(SessionId session) const;

  IdCounter<OrderId> ids_;
  std::map<OrderId, Order> orders_;
  absl::btree_map<SessionId, Orders> by_session_;  // Each ascending by id.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SESSIONS_ORDER_BOOK_H_
