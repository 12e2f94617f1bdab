#include "daemon/core/requests/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::core {
namespace {

Request Make(uint64_t session, uint64_t id, int priority) {
  Request request;
  request.session = SessionId(session);
  request.id = RequestId(id);
  request.priority = priority;
  request.deadline = absl::UnixEpoch() + absl::Seconds(id);
  return request;
}

std::vector<uint64_t> Ids(const std::vector<Request*>& requests) {
  std::vector<uint64_t> ids;
  for (const Request* request : requests) ids.push_back(request->id.value());
  return ids;
}

TEST(RequestQueueTest, TheFirstSessionThenPriorityThenAge) {
  RequestQueue queue;
  queue.Add(Make(1, 1, 0));
  queue.Add(Make(2, 2, 5));
  queue.Add(Make(3, 3, 5));
  queue.Add(Make(4, 4, -1));
  EXPECT_THAT(Ids(queue.Waiting(OpOfSession())),
              testing::ElementsAre(2, 3, 1, 4));
  EXPECT_THAT(Ids(queue.Waiting({SessionId(4), 0})),
              testing::ElementsAre(4, 2, 3, 1));
}

TEST(RequestQueueTest, AssemblingRequestsDoNotWait) {
  RequestQueue queue;
  queue.Add(Make(1, 1, 0)).assembling = true;
  queue.Add(Make(1, 2, 0));
  EXPECT_THAT(Ids(queue.Waiting(OpOfSession())), testing::ElementsAre(2));
  EXPECT_EQ(queue.CountOf(SessionId(1)), 2u);
  EXPECT_EQ(queue.WaitingOf(SessionId(1)), 1);
  EXPECT_EQ(queue.NextDeadline(), absl::UnixEpoch() + absl::Seconds(2));
}

TEST(RequestQueueTest, RequestsAreFoundByIdWithinTheirSession) {
  RequestQueue queue;
  const uint64_t number = queue.Add(Make(1, 7, 0)).number;
  EXPECT_EQ(queue.Find(SessionId(2), RequestId(7)), nullptr);
  ASSERT_NE(queue.Find(SessionId(1), RequestId(7)), nullptr);
  queue.Remove(number);
  EXPECT_EQ(queue.Find(number), nullptr);
  EXPECT_EQ(queue.NextDeadline(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace mets::core
