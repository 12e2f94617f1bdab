#include "common/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace mets {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }
int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(UniqueFd, ClosesWhenItGoes) {
  int raw;
  {
    UniqueFd fd(OpenNull());
    raw = fd.get();
    EXPECT_TRUE(fd.ok());
    EXPECT_TRUE(IsOpen(raw));
  }
  EXPECT_FALSE(IsOpen(raw));
}

TEST(UniqueFd, MovesOwnership) {
  UniqueFd a(OpenNull());
  const int raw = a.get();
  UniqueFd b(std::move(a));
  EXPECT_FALSE(a.ok());
  UniqueFd c(OpenNull());
  const int replaced = c.get();
  c = std::move(b);
  EXPECT_FALSE(IsOpen(replaced));
  EXPECT_EQ(c.get(), raw);
  UniqueFd d(c.release());
  EXPECT_FALSE(c.ok());
  d.reset();
  EXPECT_FALSE(IsOpen(raw));
}

TEST(UniqueFd, SurvivesSelfMove) {
  UniqueFd fd(OpenNull());
  UniqueFd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(IsOpen(fd.get()));
}

}  // namespace
}  // namespace mets
