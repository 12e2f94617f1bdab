#include "daemon/app/store/descriptor_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace mets::app {
namespace {

// A service manager's socket, which is read by the test.
class DescriptorStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path =
        absl::StrCat("/tmp/mets-notify-", getpid(), "-", ++number_);
    socket_ = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
              0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  void TearDown() override {
    unlink(getenv("NOTIFY_SOCKET"));
    unsetenv("NOTIFY_SOCKET");
  }

  // The next message, with a + for each descriptor; "" when there is none.
  std::string Said() {
    char text[512];
    char control[CMSG_SPACE(sizeof(int))];
    iovec part = {text, sizeof(text)};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t size = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (size < 0) return "";
    std::string said(text, size);
    const cmsghdr* part_of = CMSG_FIRSTHDR(&message);
    if (part_of != nullptr && part_of->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part_of), sizeof(fd));
      close(fd);
      said += "+";
    }
    return said;
  }

  DescriptorStore Make(std::set<std::string> kept = {}) {
    return DescriptorStore(std::move(kept), [this](const absl::Status& why) {
      given_up_.push_back(std::string(why.message()));
    });
  }

  static int number_;
  UniqueFd socket_;
  const UniqueFd fd_{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  std::vector<std::string> given_up_;
};

int DescriptorStoreTest::number_ = 0;

TEST_F(DescriptorStoreTest, DescriptorsAreKeptAndDroppedByName) {
  EXPECT_TRUE(DescriptorStore::Exists());
  DescriptorStore store = Make();
  store.Keep(ChunkId(31), fd_.get());
  EXPECT_EQ(Said(), "FDSTORE=1\nFDPOLL=0\nFDNAME=c1f+");
  store.Keep(ExtentId(2), fd_.get());
  EXPECT_EQ(Said(), "FDSTORE=1\nFDPOLL=0\nFDNAME=e2+");
  store.Drop(ChunkId(31));
  EXPECT_EQ(Said(), "FDSTOREREMOVE=1\nFDNAME=c1f");
  store.Drop(ChunkId(31));  // It is not there.
  EXPECT_EQ(Said(), "");
  EXPECT_TRUE(given_up_.empty());
}

TEST_F(DescriptorStoreTest, MoreNamesThanCanBePassedAreGivenUp) {
  std::set<std::string> kept;
  for (int i = 100'000; i < 117'000; ++i) kept.insert(absl::StrCat(i));
  DescriptorStore store = Make(kept);
  store.Keep("12345", fd_.get());  // 7 bytes each: 1,000 are left.
  EXPECT_EQ(Said(), "FDSTORE=1\nFDPOLL=0\nFDNAME=12345+");
  EXPECT_TRUE(given_up_.empty());
  // Without anybody who takes the messages, they cannot be sent either.
  unlink(getenv("NOTIFY_SOCKET"));
  store.Keep(std::string(995, 'x'), fd_.get());
  ASSERT_EQ(given_up_.size(), 1u);
  EXPECT_NE(given_up_[0].find("more than can be passed"), std::string::npos);
  store.Keep(ChunkId(1), fd_.get());
  EXPECT_EQ(Said(), "");
  EXPECT_EQ(given_up_.size(), 1u);
}

TEST_F(DescriptorStoreTest, NobodyThereIsSaidOnce) {
  unlink(getenv("NOTIFY_SOCKET"));
  DescriptorStore store = Make();
  store.Keep(ChunkId(1), fd_.get());
  store.Keep(ChunkId(2), fd_.get());
  EXPECT_EQ(given_up_.size(), 1u);
}

}  // namespace
}  // namespace mets::app
