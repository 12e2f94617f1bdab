#include "daemon/core/sessions/order_book.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

const absl::Time kStart = absl::UnixEpoch();

Order Make(uint64_t session, OrderKind kind, Bytes target) {
  Order order;
  order.session = SessionId(session);
  order.kind = kind;
  order.target = target;
  order.due = kStart + absl::Seconds(5);
  return order;
}

TEST(OrderBookTest, ComingIsWhatIsPromisedAndNotReleased) {
  OrderBook book;
  book.Add(Make(1, OrderKind::kTrim, MiB(4))).released = MiB(1);
  book.Add(Make(1, OrderKind::kEvict, MiB(2))).released = MiB(8);
  book.Add(Make(2, OrderKind::kEvict, MiB(2)));
  EXPECT_EQ(book.Coming(SessionId(1), 0), MiB(3));
  EXPECT_EQ(book.Coming(0), MiB(5));
  EXPECT_EQ(book.Coming(1), Bytes());
}

TEST(OrderBookTest, ALateOrderPromisesNothing) {
  OrderBook book;
  const OrderId id = book.Add(Make(1, OrderKind::kTrim, MiB(4))).id;
  EXPECT_TRUE(book.MarkLate(kStart).empty());
  EXPECT_EQ(book.NextDue(), kStart + absl::Seconds(5));
  EXPECT_EQ(book.MarkLate(kStart + absl::Seconds(5)).size(), 1u);
  EXPECT_TRUE(book.HasLate(SessionId(1)));
  EXPECT_EQ(book.Coming(0), Bytes());
  EXPECT_EQ(book.NextDue(), absl::InfiniteFuture());
  book.Remove(id);
  EXPECT_FALSE(book.HasLate(SessionId(1)));
}

TEST(OrderBookTest, AnOrderIsFoundOnlyByItsOwnSession) {
  OrderBook book;
  const OrderId id = book.Add(Make(1, OrderKind::kTrim, MiB(4))).id;
  EXPECT_NE(book.Find(SessionId(1), id), nullptr);
  EXPECT_EQ(book.Find(SessionId(2), id), nullptr);
  EXPECT_NE(book.FindKind(SessionId(1), OrderKind::kTrim, 0), nullptr);
  EXPECT_EQ(book.FindKind(SessionId(1), OrderKind::kEvict, 0), nullptr);
  EXPECT_EQ(book.TakeSession(SessionId(1)).size(), 1u);
  EXPECT_TRUE(book.all().empty());
}

}  // namespace
}  // namespace mets::core
