#include "common/base/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mets {
namespace {

TEST(Process, PidfdIsReadableOnceTheProcessHasEnded) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  absl::StatusOr<UniqueFd> pidfd = OpenPidfd(child);
  ASSERT_TRUE(pidfd.ok()) << pidfd.status();
  EXPECT_EQ(*PidOfPidfd(pidfd->get()), child);
  pollfd poll_me = {pidfd->get(), POLLIN, 0};
  EXPECT_EQ(poll(&poll_me, 1, 0), 0);
  kill(child, SIGKILL);
  EXPECT_EQ(poll(&poll_me, 1, 10000), 1);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(*PidOfPidfd(pidfd->get()), -1);
  EXPECT_TRUE(absl::IsNotFound(OpenPidfd(child).status()));
  EXPECT_TRUE(absl::IsNotFound(ProcessStartTime(child).status()));
}

TEST(Process, StartTimesNameProcesses) {
  absl::StatusOr<uint64_t> own = ProcessStartTime(getpid());
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(*own, *ProcessStartTime(getpid()));
  EXPECT_GE(*own, *ProcessStartTime(getppid()));
}

TEST(Process, OtherDescriptorsAreNoPidfds) {
  EXPECT_TRUE(absl::IsInvalidArgument(PidOfPidfd(0).status()));
  EXPECT_FALSE(PidOfPidfd(-1).ok());
}

}  // namespace
}  // namespace mets
