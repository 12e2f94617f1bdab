#include "daemon/transport/admin/process_ender.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/process.h"

namespace mets::transport {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

// A child, which ends by SIGTERM or is deaf to it.
class Child {
 public:
  explicit Child(bool deaf) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      if (deaf) signal(SIGTERM, SIG_IGN);
      if (write(ready[1], "x", 1) != 1) _exit(1);
      while (true) pause();
    }
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    absl::StatusOr<UniqueFd> pidfd = OpenPidfd(pid_);
    EXPECT_TRUE(pidfd.ok());
    pidfd_ = *std::move(pidfd);
  }
  // The signal that ended it.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  int pidfd() const { return pidfd_.get(); }

 private:
  pid_t pid_;
  UniqueFd pidfd_;
};

TEST(ProcessEnderTest, AProcessIsAskedFirst) {
  Child child(/*deaf=*/false);
  ProcessEnder ender;
  ASSERT_TRUE(ender.End(child.pidfd(), kNow + absl::Seconds(1)).ok());
  EXPECT_EQ(child.Wait(), SIGTERM);
  ender.Tick(kNow);
  EXPECT_EQ(ender.open(), 0u);
}

TEST(ProcessEnderTest, ADeafProcessIsKilledWhenItsTimeHasCome) {
  Child child(/*deaf=*/true);
  ProcessEnder ender;
  ASSERT_TRUE(ender.End(child.pidfd(), kNow + absl::Seconds(1)).ok());
  ender.Tick(kNow);
  EXPECT_EQ(ender.open(), 1u);
  ender.Tick(kNow + absl::Seconds(1));
  EXPECT_EQ(child.Wait(), SIGKILL);
  EXPECT_EQ(ender.open(), 0u);
}

TEST(ProcessEnderTest, AProcessThatHasEndedIsFine) {
  Child child(/*deaf=*/false);
  ProcessEnder ender;
  ASSERT_TRUE(ender.End(child.pidfd(), kNow).ok());
  child.Wait();
  EXPECT_TRUE(ender.End(child.pidfd(), kNow).ok());
  ender.Tick(kNow);
  EXPECT_EQ(ender.open(), 0u);
}

}  // namespace
}  // namespace mets::transport
