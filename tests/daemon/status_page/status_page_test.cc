// The status page as a browser gets it.
#include "daemon/status_page/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"

namespace mets::status_page {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class FakeSource : public core::StatusSource {
 public:
  core::Status GetStatus() const override {
    core::Status status;
    status.policy = "lru";
    core::DeviceStatus device;
    device.id = "host0";
    device.pool = MiB(64);
    status.devices.push_back(device);
    core::JobStatus job;
    job.name = "bert";
    job.device = "host0";
    job.resident = MiB(48);
    job.phase = core::JobPhase::kWaitsForTurn;
    status.jobs.push_back(job);
    core::ShareStatus share;
    share.name = "weights";
    share.device = "host0";
    share.bytes = MiB(8);
    share.jobs = {"bert", "gpt"};
    share.sessions = 3;
    share.payer = "bert";
    status.shares.push_back(share);
    return status;
  }
  std::vector<core::WhyAnswer> Why(const std::string& job) const override {
    if (job != "bert") return {};
    core::WhyAnswer answer;
    answer.summary = "waits for its turn since 2 s";
    answer.reasons = {"'gpt' has the device"};
    return {answer};
  }
};

class FakeLog : public core::EventLog {
 public:
  std::vector<Entry> Recent(uint64_t after, const std::string&,
                            size_t) const override {
    Entry entry{1, core::Event()};
    entry.event.job = "<script>";
    entry.event.time = absl::UnixEpoch();
    Entry turn{2, core::Event()};
    turn.event.kind = core::EventKind::kTurn;
    turn.event.time = absl::UnixEpoch();
    if (after > 0) return {};
    return {entry, turn};
  }
  uint64_t Watch(std::function<void()>) override { return 0; }
  void Unwatch(uint64_t) override {}
};

class StatusPageTest : public ::testing::Test {
 protected:
  StatusPageTest() {
    auto page =
        StatusPage::Start({"127.0.0.1:0", "1.2.3"}, source_, log_, clock_);
    EXPECT_TRUE(page.ok()) << page.status();
    page_ = *std::move(page);
    client_ = std::make_unique<httplib::Client>("http://" + page_->address());
  }

  Json GetJson(const std::string& path) {
    const auto answer = client_->Get(path);
    EXPECT_TRUE(answer && answer->status == 200) << path;
    return answer ? Json::parse(answer->body) : Json();
  }

  // A connection on which `text` has been sent.
  UniqueFd Connect(const std::string& text) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(std::stoi(page_->address().substr(10)));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)),
              0);
    EXPECT_GT(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), 0);
    return fd;
  }

  static bool IsClosed(int fd) {
    timeval timeout = {20, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    char byte;
    const ssize_t n = recv(fd, &byte, 1, 0);
    return n == 0 || (n < 0 && errno == ECONNRESET);
  }

  FakeSource source_;
  FakeLog log_;
  const RealClock clock_;
  std::unique_ptr<StatusPage> page_;
  std::unique_ptr<httplib::Client> client_;
};

TEST_F(StatusPageTest, ThePageAndItsFilesComeFromHere) {
  const auto page = client_->Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"),
              HasSubstr("default-src 'none'"));
  for (const char* file : {"page.css", "page.js", "view.js", "curves.js",
                           "decisions.js", "format.js", "icon.svg"}) {
    const auto answer = client_->Get(absl::StrCat("/", file));
    ASSERT_TRUE(answer && answer->status == 200) << file;
    EXPECT_FALSE(answer->body.empty());
    // Nothing is loaded from elsewhere; SVG's name of itself is no address.
    EXPECT_EQ(answer->body.find("https://"), std::string::npos) << file;
  }
  EXPECT_EQ(client_->Get("/nothing")->status, 404);
}

TEST_F(StatusPageTest, StatusHasDevicesJobsAndSamples) {
  const Json status = GetJson("/api/status");
  EXPECT_EQ(status.at("version"), "1.2.3");
  EXPECT_EQ(status.at("devices").at(0).at("pool"), 64 << 20);
  EXPECT_EQ(status.at("jobs").at(0).at("phase"), "waits_for_turn");
  const Json& share = status.at("shares").at(0);
  EXPECT_EQ(share.at("name"), "weights");
  EXPECT_EQ(share.at("jobs"), Json::array({"bert", "gpt"}));
  EXPECT_EQ(share.at("sessions"), 3);
  EXPECT_EQ(status.at("samples").at(0).at(0), 1);
  EXPECT_EQ(status.at("samples").at(0).at(2).size(), 1u);
  const uint64_t newest = status.at("samples").back().at(0);
  const Json later = GetJson(absl::StrCat("/api/status?after=", newest + 1000));
  EXPECT_TRUE(later.at("samples").empty());
}

TEST_F(StatusPageTest, DecisionsComeInWordsAndWithoutDetails) {
  const Json events = GetJson("/api/events");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(events[0].at("text").get<std::string>(), HasSubstr("<script>"));
  EXPECT_TRUE(GetJson("/api/events?after=1").empty());
}

TEST_F(StatusPageTest, WhyIsAnsweredForJobNamesOnly) {
  EXPECT_EQ(GetJson("/api/why?job=bert").at(0).at("summary"),
            "waits for its turn since 2 s");
  EXPECT_TRUE(GetJson("/api/why?job=nobody").empty());
  EXPECT_EQ(client_->Get("/api/why?job=%3Cb%3E")->status, 400);
}

TEST_F(StatusPageTest, OnlyGetIsAnswered) {
  EXPECT_EQ(client_->Post("/api/status")->status, 405);
  EXPECT_EQ(client_->Delete("/")->status, 405);
}

TEST_F(StatusPageTest, RequestsForOtherHostsAreRefused) {
  const auto status = [&](const std::string& host) {
    return client_->Get("/api/status", {{"Host", host}})->status;
  };
  EXPECT_EQ(status("evil.example"), 403);
  EXPECT_EQ(status("localhost:" + page_->address().substr(10)), 200);
}

TEST_F(StatusPageTest, ClientsThatSayNothingDelayNobodyForLong) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(Connect("GET / HTTP/1.1\r\n"));
  client_->set_read_timeout(60);
  EXPECT_EQ(client_->Get("/")->status, 200);
  EXPECT_TRUE(IsClosed(silent.front().get()));
}

TEST_F(StatusPageTest, AnEndlessHeaderEndsTheConnection) {
  const UniqueFd endless = Connect("GET / HTTP/1.1\r\n");
  const std::string header = "A: " + std::string(997, 'b') + "\r\n";
  int sent = 0;
  while (send(endless.get(), header.data(), header.size(), MSG_NOSIGNAL) > 0) {
    ASSERT_LT(++sent, 100'000) << "the page has read 100 MB";
  }
  EXPECT_EQ(client_->Get("/")->status, 200);
}

TEST_F(StatusPageTest, WhoDoesNotTakeItsAnswerDelaysNobody) {
  std::vector<UniqueFd> lazy;
  for (int i = 0; i < 40; ++i) {
    lazy.push_back(Connect("GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  client_->set_read_timeout(60);
  EXPECT_EQ(client_->Get("/")->status, 200);
}

TEST_F(StatusPageTest, AnAddressInUseIsSaidToBeSo) {
  const auto second =
      StatusPage::Start({page_->address(), ""}, source_, log_, clock_);
  ASSERT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(page_->address()));
}

TEST(HostTest, AddressesAndOwnNamesAreOurs) {
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:6387",
                           "[::1]:6387", "node7:80", "10.0.0.1"}) {
    EXPECT_TRUE(IsOurHost(host, "node7")) << host;
  }
  for (const char* host : {"", "evil.example", "127.0.0.1.evil.example:80",
                           "localhost.evil.example", "[evil.example]:80",
                           "[::1"}) {
    EXPECT_FALSE(IsOurHost(host, "node7")) << host;
  }
}

}  // namespace
}  // namespace mets::status_page
