// A connected pair of descriptor channels.
#ifndef METS_TESTS_COMMON_IPC_CHANNEL_FIXTURE_H_
#define METS_TESTS_COMMON_IPC_CHANNEL_FIXTURE_H_

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/ipc/descriptor_channel.h"

namespace mets::ipc {

inline int CountOpenFds() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// Checks at the end that no descriptor has leaked.
class ChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fds_before_ = CountOpenFds();
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    daemon_ = std::make_unique<DescriptorChannel>(UniqueFd(ends[0]));
    client_ = std::make_unique<DescriptorChannel>(UniqueFd(ends[1]));
  }
  void TearDown() override {
    daemon_.reset();
    client_.reset();
    EXPECT_EQ(CountOpenFds(), fds_before_) << "descriptors leaked";
  }

  // A descriptor of a file of its own, and which file a descriptor is of.
  static UniqueFd MakeFile() {
    char path[] = "/tmp/mets-test-XXXXXX";
    UniqueFd fd(mkostemp(path, O_CLOEXEC));
    METS_CHECK(fd.ok());
    unlink(path);
    return fd;
  }
  static ino_t InodeOf(int fd) {
    struct stat info;
    METS_CHECK(fstat(fd, &info) == 0);
    return info.st_ino;
  }

  std::unique_ptr<DescriptorChannel> daemon_;
  std::unique_ptr<DescriptorChannel> client_;
  int fds_before_ = 0;
};

}  // namespace mets::ipc

#endif  // METS_TESTS_COMMON_IPC_CHANNEL_FIXTURE_H_
