#include "daemon/core/sessions/order_book.h"

#include <algorithm>
#include <utility>

namespace mets::core {

Bytes Order::coming() const {
  if (late) return Bytes();
  return std::max(Bytes(), target - released);
}

Order& OrderBook::Add(Order order) {
  order.id = ids_.Next();
  Order& added =
      orders_.emplace_hint(orders_.end(), order.id, std::move(order))->second;
  by_session_[added.session].push_back(&added);
  return added;
}

void OrderBook::Remove(OrderId id) {
  auto it = orders_.find(id);
  if (it == orders_.end()) return;
  auto of_session = by_session_.find(it->second.session);
  Orders& orders = of_session->second;
  orders.erase(std::find(orders.begin(), orders.end(), &it->second));
  if (orders.empty()) by_session_.erase(of_session);
  orders_.erase(it);
}

const OrderBook::Orders& OrderBook::OfSession(SessionId session) const {
  static const auto& none = *new Orders();
  auto it = by_session_.find(session);
  return it == by_session_.end() ? none : it->second;
}

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
  for (const Order* order : OfSession(session)) {
    if (order->kind == kind && order->device == device) return order;
  }
  return nullptr;
}

std::vector<Order> OrderBook::TakeSession(SessionId session) {
  std::vector<Order> taken;
  for (Order* order : OfSession(session)) {
    const OrderId id = order->id;
    taken.push_back(std::move(*order));
    orders_.erase(id);
  }
  by_session_.erase(session);
  return taken;
}

Bytes OrderBook::Coming(SessionId session, size_t device) const {
  Bytes sum;
  for (const Order* order : OfSession(session)) {
    if (order->device == device) sum += order->coming();
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
  const Orders& orders = OfSession(session);
  return std::any_of(orders.begin(), orders.end(),
                     [](const Order* order) { return order->late; });
}

absl::Time OrderBook::NextDue() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, order] : orders_) {
    if (!order.late) next = std::min(next, order.due);
  }
  return next;
}

}  // namespace mets::core
