#include "daemon/core/order_book.h"

#include <algorithm>
#include <utility>

namespace mets::core {

Bytes Order::coming() const {
  if (late) return Bytes();
  return std::max(Bytes(), target - released);
}

Order& OrderBook::Add(Order order) {
  order.id = ids_.Next();
  return orders_.emplace(order.id, std::move(order)).first->second;
}

void OrderBook::Remove(OrderId id) { orders_.erase(id); }

Order* OrderBook::Find(SessionId session, OrderId id) {
  auto it = orders_.find(id);
  if (it == orders_.end() || it->second.session != session) return nullptr;
  return &it->second;
}

const Order* OrderBook::Find(OrderId id) const {
  auto it = orders_.find(id);
  return it == orders_.end() ? nullptr : &it->second;
}

const Order* OrderBook::FindKind(SessionId session, OrderKind kind,
                                 size_t device) const {
  for (const auto& [id, order] : orders_) {
    if (order.session == session && order.kind == kind &&
        order.device == device) {
      return &order;
    }
  }
  return nullptr;
}

std::vector<Order> OrderBook::TakeSession(SessionId session) {
  std::vector<Order> taken;
  for (auto it = orders_.begin(); it != orders_.end();) {
    if (it->second.session != session) {
      ++it;
      continue;
    }
    taken.push_back(std::move(it->second));
    it = orders_.erase(it);
  }
  return taken;
}

Bytes OrderBook::Coming(SessionId session, size_t device) const {
  Bytes sum;
  for (const auto& [id, order] : orders_) {
    if (order.session == session && order.device == device) {
      sum += order.coming();
    }
  }
  return sum;
}

Bytes OrderBook::Coming(size_t device) const {
  Bytes sum;
  for (const auto& [id, order] : orders_) {
    if (order.device == device) sum += order.coming();
  }
  return sum;
}

std::vector<SessionId> OrderBook::MarkLate(absl::Time now) {
  std::vector<SessionId> sessions;
  for (auto& [id, order] : orders_) {
    if (order.late || order.due > now) continue;
    order.late = true;
    sessions.push_back(order.session);
  }
  return sessions;
}

bool OrderBook::HasLate(SessionId session) const {
  return std::any_of(orders_.begin(), orders_.end(), [&](const auto& entry) {
    return entry.second.session == session && entry.second.late;
  });
}

absl::Time OrderBook::NextDue() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, order] : orders_) {
    if (!order.late) next = std::min(next, order.due);
  }
  return next;
}

}  // namespace mets::core
