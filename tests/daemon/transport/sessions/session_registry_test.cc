#include "daemon/transport/sessions/session_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/daemon/transport/admin/recording_sink.h"

namespace mets::transport {
namespace {

using ::testing::HasSubstr;

class SessionRegistryTest : public ::testing::Test {
 protected:
  SessionRegistryTest() { Make({}); }

  void Make(RegistryOptions options) {
    options.first_session = SessionId(10);
    options.max_sessions_per_uid = 3;
    registry_ = std::make_unique<SessionRegistry>(std::move(options), sink_);
  }

  static std::shared_ptr<FdConnection> NewConnection() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    close(fds[1]);
    return std::make_shared<FdConnection>(
        ipc::DescriptorChannel(UniqueFd(fds[0])));
  }

  std::string Admit(uint64_t connection,
                    ProcessIdentity process = {7, 100, 1}) {
    auto token = registry_->Admit(connection, process, NewConnection());
    EXPECT_TRUE(token.ok()) << token.status();
    return token.value_or("");
  }

  static v1::Hello HelloWith(const std::string& token) {
    v1::Hello hello;
    hello.set_token(token);
    hello.set_job("bert");
    return hello;
  }

  absl::StatusOr<SessionId> Attach(const v1::Hello& hello,
                                   std::shared_ptr<FakeStream> stream) {
    return registry_->Attach(hello, std::move(stream));
  }

  RecordingSink sink_;
  std::unique_ptr<SessionRegistry> registry_;
  std::shared_ptr<FakeStream> first_ = std::make_shared<FakeStream>();
  std::shared_ptr<FakeStream> second_ = std::make_shared<FakeStream>();
};

TEST_F(SessionRegistryTest, TokenOpensTheSession) {
  v1::Hello hello = HelloWith(Admit(1));
  hello.set_limit_bytes(99);
  const auto session = Attach(hello, first_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(*session, SessionId(10));
  ASSERT_EQ(sink_.Story(), "opened");
  const auto& opened = std::get<core::SessionOpened>(sink_.inputs[0]);
  EXPECT_EQ(opened.session, *session);
  EXPECT_EQ(opened.domain, DomainId(8));
  EXPECT_EQ(opened.job, "bert");
  EXPECT_EQ(opened.limit, Bytes(99));
  EXPECT_FALSE(opened.expects_snapshot);
}

TEST_F(SessionRegistryTest, KeptSessionGoesOnWithItsProcess) {
  RegistryOptions options;
  options.kept = {{{SessionId(4), {7, 100, 1}}, "bert"},
                  {{SessionId(5), {8, 101, 1}}, "bert"}};
  Make(std::move(options));
  EXPECT_EQ(registry_->Identities().size(), 2u);
  // A new session of the process is another one.
  EXPECT_EQ(*Attach(HelloWith(Admit(1)), first_), SessionId(10));
  EXPECT_EQ(sink_.Story(), "opened");
  v1::Hello hello = HelloWith(Admit(2));
  hello.set_reconnect(true);
  hello.set_previous_token(ipc::NewToken());
  EXPECT_EQ(*Attach(hello, second_), SessionId(4));
  EXPECT_EQ(sink_.Story(), "opened resumed");
  // It has come back: its connection tells when it ends.
  registry_->ExpectedProcessEnded(SessionId(4));
  EXPECT_EQ(sink_.Story(), "opened resumed");
  registry_->ProcessEnded(2);
  EXPECT_EQ(sink_.Story(), "opened resumed ended");
  registry_->ExpectedProcessEnded(SessionId(5));
  EXPECT_EQ(sink_.Story(), "opened resumed ended ended");
  EXPECT_EQ(registry_->Identities().size(), 1u);
}

TEST_F(SessionRegistryTest, WrongTokenIsUnauthenticated) {
  Admit(1);
  const auto session = Attach(HelloWith(ipc::NewToken()), first_);
  EXPECT_TRUE(absl::IsUnauthenticated(session.status()));
  EXPECT_THAT(std::string(session.status().message()),
              HasSubstr("wrong token"));
  EXPECT_EQ(sink_.Story(), "");
}

TEST_F(SessionRegistryTest, StrangersBehindTheOverflowUidShareNoDomain) {
  ASSERT_TRUE(Attach(HelloWith(Admit(1, {kOverflowUid, 0, 0})), first_).ok());
  ASSERT_TRUE(Attach(HelloWith(Admit(2, {kOverflowUid, 0, 0})), second_).ok());
  EXPECT_NE(std::get<core::SessionOpened>(sink_.inputs[0]).domain,
            std::get<core::SessionOpened>(sink_.inputs[1]).domain);
}

TEST_F(SessionRegistryTest, UserHasABoundedNumberOfSessions) {
  for (uint64_t i = 1; i <= 3; ++i) Admit(i);
  const auto token = registry_->Admit(4, {7, 101, 1}, NewConnection());
  EXPECT_TRUE(absl::IsResourceExhausted(token.status()));
  EXPECT_TRUE(registry_->Admit(5, {8, 102, 1}, NewConnection()).ok());
  // Root in another pod.
  EXPECT_TRUE(registry_->Admit(7, {7, 103, 1}, NewConnection(), 1).ok());
  // One that was never opened goes with its connection.
  EXPECT_FALSE(registry_->ConnectionClosed(1));
  EXPECT_TRUE(registry_->Admit(6, {7, 101, 1}, NewConnection()).ok());
}

TEST_F(SessionRegistryTest, WhoHasAllSessionsOfItsUserMayComeBack) {
  RegistryOptions options;
  options.kept = {{{SessionId(4), {7, 100, 1}}, "bert"},
                  {{SessionId(5), {7, 101, 1}}, "bert"}};
  Make(std::move(options));
  const std::string third = Admit(1, {7, 102, 1});
  ASSERT_TRUE(Attach(HelloWith(third), first_).ok());
  // After a restart of the daemon, and after its socket has broken.
  v1::Hello hello = HelloWith(Admit(2));
  hello.set_reconnect(true);
  EXPECT_EQ(*Attach(hello, second_), SessionId(4));
  registry_->ConnectionClosed(1);
  hello = HelloWith(Admit(3, {7, 102, 1}));
  hello.set_reconnect(true);
  hello.set_previous_token(third);
  EXPECT_EQ(*Attach(hello, std::make_shared<FakeStream>()), SessionId(10));
  // But with no more sessions than before.
  EXPECT_TRUE(absl::IsResourceExhausted(
      registry_->Admit(4, {7, 103, 1}, NewConnection()).status()));
  const std::string another = Admit(5, {7, 101, 1});
  EXPECT_TRUE(absl::IsResourceExhausted(
      registry_->Admit(6, {7, 101, 1}, NewConnection()).status()));
  const auto more = Attach(HelloWith(another), std::make_shared<FakeStream>());
  EXPECT_TRUE(absl::IsResourceExhausted(more.status())) << more.status();
  EXPECT_EQ(registry_->Identities().size(), 3u);
}

TEST_F(SessionRegistryTest, SessionIsLostWithItsStreamAndEndsWithItsProcess) {
  const SessionId session = *Attach(HelloWith(Admit(1)), first_);
  EXPECT_TRUE(registry_->ConnectionClosed(1));
  EXPECT_TRUE(first_->closed);
  EXPECT_EQ(sink_.Story(), "opened");
  registry_->Detach(first_.get(), session);
  EXPECT_EQ(sink_.Story(), "opened lost");
  registry_->ProcessEnded(1);
  EXPECT_EQ(sink_.Story(), "opened lost ended");
  EXPECT_TRUE(registry_->Identities().empty());
}

TEST_F(SessionRegistryTest, DetachSaysWhetherTheSessionHasAnotherStream) {
  v1::Hello hello = HelloWith(Admit(1));
  const SessionId session = *Attach(hello, first_);
  hello.set_reconnect(true);
  ASSERT_TRUE(Attach(hello, second_).ok());
  EXPECT_FALSE(registry_->Detach(first_.get(), session));
  registry_->ProcessEnded(1);
  // What depends on the stream ends with it, even if the process's end was
  // noticed first.
  EXPECT_TRUE(registry_->Detach(second_.get(), session));
}

TEST_F(SessionRegistryTest, PreviousTokenResumesTheSession) {
  const std::string old_token = Admit(1);
  const SessionId session = *Attach(HelloWith(old_token), first_);
  registry_->Detach(first_.get(), session);
  v1::Hello hello = HelloWith(Admit(2));
  hello.set_reconnect(true);
  hello.set_previous_token(old_token);
  const auto resumed = Attach(hello, second_);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(*resumed, session);
  EXPECT_EQ(sink_.Story(), "opened lost resumed");
  // The old token and the old connection are worth nothing any more.
  EXPECT_FALSE(registry_->Knows(1));
  EXPECT_TRUE(
      absl::IsUnauthenticated(Attach(HelloWith(old_token), first_).status()));
  registry_->ProcessEnded(1);
  EXPECT_EQ(sink_.Story(), "opened lost resumed");
  registry_->ProcessEnded(2);
  EXPECT_EQ(sink_.Story(), "opened lost resumed ended");
}

TEST_F(SessionRegistryTest, ResumeWhileTheOldStreamStandsLosesItFirst) {
  const std::string old_token = Admit(1);
  ASSERT_TRUE(Attach(HelloWith(old_token), first_).ok());
  v1::Hello hello = HelloWith(Admit(2));
  hello.set_reconnect(true);
  hello.set_previous_token(old_token);
  ASSERT_TRUE(Attach(hello, second_).ok());
  EXPECT_TRUE(first_->closed);
  EXPECT_EQ(sink_.Story(), "opened lost resumed");
  registry_->Detach(first_.get(), SessionId(10));
  EXPECT_EQ(sink_.Story(), "opened lost resumed");
}

TEST_F(SessionRegistryTest, AnotherProcessCannotTakeASessionOver) {
  const std::string old_token = Admit(1);
  ASSERT_TRUE(Attach(HelloWith(old_token), first_).ok());
  v1::Hello hello = HelloWith(Admit(2, {7, 200, 5}));
  hello.set_reconnect(true);
  hello.set_previous_token(old_token);
  const auto session = Attach(hello, second_);
  ASSERT_TRUE(session.ok());
  EXPECT_NE(*session, SessionId(10));
  EXPECT_FALSE(first_->closed);
  EXPECT_EQ(sink_.Story(), "opened opened");
}

TEST_F(SessionRegistryTest, SameTokenResumesOnlyWithReconnect) {
  v1::Hello hello = HelloWith(Admit(1));
  const SessionId session = *Attach(hello, first_);
  EXPECT_TRUE(absl::IsFailedPrecondition(Attach(hello, second_).status()));
  registry_->Detach(first_.get(), session);
  hello.set_reconnect(true);
  EXPECT_TRUE(Attach(hello, second_).ok());
  EXPECT_EQ(sink_.Story(), "opened lost resumed");
}

TEST_F(SessionRegistryTest, ActionsForAnEarlierStreamAreNotSent) {
  v1::Hello hello = HelloWith(Admit(1));
  const SessionId session = *Attach(hello, first_);
  EXPECT_EQ(registry_->Find(session).stream, nullptr);  // No Welcome yet.
  EXPECT_EQ(registry_->Welcome(session).stream, first_);
  EXPECT_EQ(registry_->Find(session).stream, first_);
  registry_->Detach(first_.get(), session);
  hello.set_reconnect(true);
  ASSERT_TRUE(Attach(hello, second_).ok());
  EXPECT_EQ(registry_->Find(session).stream, nullptr);
  EXPECT_EQ(registry_->Welcome(session).stream, second_);
  EXPECT_EQ(registry_->Find(session).stream, second_);
}

TEST_F(SessionRegistryTest, WelcomeOfAnEarlierStreamOpensNothing) {
  v1::Hello hello = HelloWith(Admit(1));
  const SessionId session = *Attach(hello, first_);
  hello.set_reconnect(true);
  ASSERT_TRUE(Attach(hello, second_).ok());
  EXPECT_EQ(registry_->Welcome(session).stream, nullptr);
  EXPECT_EQ(registry_->Find(session).stream, nullptr);
  EXPECT_EQ(registry_->Welcome(session).stream, second_);
}

TEST_F(SessionRegistryTest, RefusedSessionOnlyEnds) {
  v1::Hello hello = HelloWith(Admit(1));
  const SessionId session = *Attach(hello, first_);
  EXPECT_EQ(registry_->Refuse(session).stream, first_);
  registry_->Detach(first_.get(), session);
  hello.set_reconnect(true);
  EXPECT_TRUE(absl::IsFailedPrecondition(Attach(hello, second_).status()));
  registry_->ProcessEnded(1);
  EXPECT_EQ(sink_.Story(), "opened ended");
}

TEST_F(SessionRegistryTest, OnlyTheSessionsStreamMayPost) {
  const SessionId session = *Attach(HelloWith(Admit(1)), first_);
  registry_->PostFrom(second_.get(), session, core::Tick{});
  EXPECT_EQ(sink_.Story(), "opened");
  registry_->PostFrom(first_.get(), session, core::Tick{});
  EXPECT_EQ(sink_.Story(), "opened other");
}

TEST_F(SessionRegistryTest, RecordedProcessRecoversItsSession) {
  RegistryOptions options;
  options.expected.push_back({SessionId(3), {7, 100, 1}});
  Make(std::move(options));
  EXPECT_EQ(registry_->Identities().size(), 1u);
  ASSERT_TRUE(Attach(HelloWith(Admit(1, {7, 100, 2})), first_).ok());
  ASSERT_TRUE(Attach(HelloWith(Admit(2, {7, 100, 1})), second_).ok());
  const auto& other = std::get<core::SessionOpened>(sink_.inputs[0]);
  EXPECT_FALSE(other.recovers.ok());
  EXPECT_FALSE(other.expects_snapshot);
  const auto& same = std::get<core::SessionOpened>(sink_.inputs[1]);
  EXPECT_EQ(same.recovers, SessionId(3));
  EXPECT_TRUE(same.expects_snapshot);
}

TEST_F(SessionRegistryTest, CapsAreThoseOfTheUserBeforeThoseOfAll) {
  RegistryOptions options;
  options.caps.all = {1, MiB(1), std::nullopt};
  options.caps.by_uid[7].max_priority = 9;
  Make(std::move(options));
  ASSERT_TRUE(Attach(HelloWith(Admit(1)), first_).ok());
  ASSERT_TRUE(Attach(HelloWith(Admit(2, {8, 101, 1})), second_).ok());
  const auto& own = std::get<core::SessionOpened>(sink_.inputs[0]);
  const auto& other = std::get<core::SessionOpened>(sink_.inputs[1]);
  EXPECT_EQ(own.caps.max_priority, 9);
  EXPECT_EQ(own.caps.max_guarantee, MiB(1));
  EXPECT_EQ(other.caps.max_priority, 1);
}

TEST_F(SessionRegistryTest, NewCapsHoldForSessionsThatOpenLater) {
  CapRules rules;
  rules.all.max_limit = GiB(1);
  registry_->SetCaps(rules);
  ASSERT_TRUE(Attach(HelloWith(Admit(1)), first_).ok());
  const auto& opened = std::get<core::SessionOpened>(sink_.inputs[0]);
  EXPECT_EQ(opened.caps.max_limit, GiB(1));
}

TEST_F(SessionRegistryTest, AListenerFixesJobDomainAndCaps) {
  RegistryOptions options;
  options.caps.by_uid[7].max_priority = 9;
  options.listeners = {{}, {"tenant", DomainId(4711), {2, {}, {}}}};
  Make(std::move(options));
  auto token = registry_->Admit(1, {7, 100, 1}, NewConnection(), 1);
  ASSERT_TRUE(token.ok());
  ASSERT_TRUE(Attach(HelloWith(*token), first_).ok());
  const auto& opened = std::get<core::SessionOpened>(sink_.inputs[0]);
  EXPECT_EQ(opened.job, "tenant");
  EXPECT_EQ(opened.domain, DomainId(4711));
  EXPECT_EQ(opened.caps.max_priority, 2);
}

}  // namespace
}  // namespace mets::transport
