#include "daemon/core/victims/trim_order.h"

#include <utility>

namespace mets::core {

void OrderTrim(State& state, SessionId session, size_t device, Bytes target) {
  Order order;
  order.session = session;
  order.kind = OrderKind::kTrim;
  order.device = device;
  order.due = state.now + state.config.order_timeout;
  order.target = target;
  const OrderId id = state.orders.Add(std::move(order)).id;
  state.Send(
      TrimOrder{session, id, state.devices[device].config.name, target});
}

}  // namespace mets::core
