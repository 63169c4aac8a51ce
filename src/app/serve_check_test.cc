#include "app/serve_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "base/system.h"
#include "base/temp_dir.h"
#include "http/test_authority.h"
#include "ledger/sqlite_ledger.h"

namespace vmonce::app {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

auto Ok(const std::string& text) {
  return AllOf(Field(&CheckLine::is_ok, true), Field(&CheckLine::text, HasSubstr(text)));
}
auto Bad(const std::string& text) {
  return AllOf(Field(&CheckLine::is_ok, false), Field(&CheckLine::text, HasSubstr(text)));
}

class ServeCheckTest : public testing::Test {
 protected:
  ServeCheckTest() {
    config_.state.dir = dir_.File("state");
    config_.hosts.push_back({});
  }

  TempDir dir_;
  Config config_;
  const std::unique_ptr<Clock> clock_ = NewSystemClock();
};

TEST_F(ServeCheckTest, TellsWhetherTheTlsFilesBelongTogetherAndAreValid) {
  http::TestAuthority authority;
  const http::Issued own = authority.Issue();
  const http::Issued other = authority.Issue();
  const auto write = [&](const char* name, const std::string& pem) {
    std::ofstream(dir_.File(name)) << pem;
    chmod(dir_.File(name).c_str(), 0600);
    return dir_.File(name);
  };
  config_.server.tls_cert = write("server.pem", own.certificate);
  config_.server.tls_key = write("server.key", own.key);
  EXPECT_THAT(CheckStart(config_, clock_->Now())[1], Ok("server.pem: valid until "));
  const auto much_later = clock_->Now() + std::chrono::hours(24 * 400);
  EXPECT_THAT(CheckStart(config_, much_later)[1], Bad("expired"));
  config_.server.tls_key = write("other.key", other.key);
  EXPECT_THAT(CheckStart(config_, clock_->Now())[1], Bad("other.key"));
  config_.server.tls_cert = dir_.File("nowhere.pem");
  EXPECT_THAT(CheckStart(config_, clock_->Now())[1], Bad("nowhere.pem"));
}

TEST_F(ServeCheckTest, SaysWhatAFirstStartWouldMakeAndMakesNothing) {
  EXPECT_THAT(
      CheckStart(config_, clock_->Now()),
      ElementsAre(Ok("1 hosts, 0 images"), Ok("will be made"), Ok("key file"), Ok("ledger")));
  EXPECT_FALSE(std::filesystem::exists(config_.state.dir));
}

TEST_F(ServeCheckTest, ReadsALedgerThatAnotherProcessServes) {
  std::filesystem::create_directory(config_.state.dir);
  const auto clock = NewSystemClock();
  const auto random = NewSystemRandom();
  const auto threads = NewSystemThreads();
  const auto logger = NewNullLogger();
  ledger::SqliteLedgerOptions options;
  options.path = config_.state.LedgerPath();
  const auto serving = ledger::SqliteLedger::Open(options, *clock, *random, *threads, *logger);
  ASSERT_TRUE(serving) << serving.error().detail;
  const auto lines = CheckStart(config_, clock_->Now());
  EXPECT_THAT(lines, Each(Field(&CheckLine::is_ok, true)));
  EXPECT_THAT(lines.back(), Ok("ledger.db: schema "));
}

TEST_F(ServeCheckTest, RefusesAFileThatIsNoLedger) {
  std::filesystem::create_directory(config_.state.dir);
  std::ofstream(config_.state.LedgerPath()) << "something else, and long enough to be read at all";
  EXPECT_THAT(CheckStart(config_, clock_->Now()).back(), Bad("cannot be read as a ledger"));
}

TEST_F(ServeCheckTest, RefusesAKeyFileThatOthersCanRead) {
  std::filesystem::create_directory(config_.state.dir);
  std::ofstream(config_.state.KeyPath()) << std::string(32, 'k');
  chmod(config_.state.KeyPath().c_str(), 0644);
  EXPECT_THAT(CheckStart(config_, clock_->Now())[2], Bad("chmod 600"));
}

TEST_F(ServeCheckTest, RefusesAStateDirectoryThatIsAFile) {
  std::ofstream(config_.state.dir) << "x";
  EXPECT_THAT(CheckStart(config_, clock_->Now()),
              ElementsAre(Ok("configuration"), Bad("is no directory")));
}

}  // namespace
}  // namespace vmonce::app
