#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <vector>

#include "base/system.h"

namespace vmonce {
namespace {

std::string Line(std::string_view event, const std::vector<LogField>& fields) {
  return FormatLogLine(FromUnixMs(1767323045678), LogLevel::kInfo, event, fields);
}

boost::json::object Parsed(const std::string& line) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(line, error);
  EXPECT_FALSE(error) << line;
  return value.is_object() ? value.as_object() : boost::json::object();
}

TEST(LogLine, IsOneJsonObjectWithItsFieldsInOrder) {
  EXPECT_EQ(Line("vm_ready", {{"vm", "x"}, {"attempt", 3}, {"is_replay", false}}),
            "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"info\",\"event\":\"vm_ready\","
            "\"vm\":\"x\",\"attempt\":3,\"is_replay\":false}\n");
}

TEST(LogLine, NamesEveryLevel) {
  const std::pair<LogLevel, const char*> names[] = {{LogLevel::kDebug, "debug"},
                                                    {LogLevel::kInfo, "info"},
                                                    {LogLevel::kWarning, "warning"},
                                                    {LogLevel::kError, "error"}};
  for (const auto& [level, name] : names) {
    EXPECT_EQ(Parsed(FormatLogLine(FromUnixMs(0), level, "e", {})).at("level").as_string(), name);
  }
}

// report 70
TEST(LogLine, StaysOneLineWhateverByteAValueHolds) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string value = std::string("a") + static_cast<char>(byte) + "b";
    const std::string line = Line("e", {{"value", value}});
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << byte;
    EXPECT_TRUE(line.ends_with("}\n")) << byte;
    EXPECT_TRUE(std::none_of(line.begin(), line.end() - 1, [](char c) {
      return (c >= 0 && c < 0x20) || c == 0x7f;
    })) << byte;
    const std::string expected = byte < 0x80 ? value
                                             : "a\xef\xbf\xbd"
                                               "b";
    EXPECT_EQ(Parsed(line).at("value").as_string(), expected) << byte;
  }
}

TEST(LogLine, EscapesWhatTerminalsAndReadersTakeForControls) {
  EXPECT_NE(Line("e", {{"v",
                        "\xc2\x9b"
                        "31m"}})
                .find("\\u009b31m"),
            std::string::npos);
  EXPECT_NE(Line("e", {{"v", "\xe2\x80\xa8"}}).find("\\u2028"), std::string::npos);
  EXPECT_NE(Line("e", {{"v", "\x1b[31m"}}).find("\\u001b[31m"), std::string::npos);
}

TEST(LogLine, KeepsValidUtf8AndReplacesTheRest) {
  const std::pair<std::string, std::string> values[] = {
      {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
       "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
  };
  for (const auto& [value, expected] : values) {
    EXPECT_EQ(Parsed(Line("e", {{"v", value}})).at("v").as_string(), expected);
  }
}

TEST(LogLine, CutsWhatIsTooLongAndSaysSo) {
  for (const char* unit : {"x", "\n", "\x01", "\xe2\x82\xac", "\xff", "\""}) {
    std::string value;
    for (int i = 0; i < 5000; ++i) value += unit;
    const std::string line = Line("e", {{"before", 1}, {"value", value}, {"after", 2}});
    EXPECT_LE(line.size(), kMaxLogLineBytes);
    const boost::json::object object = Parsed(line);
    EXPECT_EQ(object.at("before"), 1);
    EXPECT_TRUE(object.at("value").as_string().ends_with("\xe2\x80\xa6"));
    EXPECT_FALSE(object.contains("after"));
    EXPECT_EQ(object.at("truncated"), true);
  }
}

TEST(LogLine, NeverGrowsBeyondItsBound) {
  for (std::size_t length = 3800; length < 4200; ++length) {
    const std::string line = Line("e", {{"value", std::string(length, 'x')}, {"after", "y"}});
    EXPECT_LE(line.size(), kMaxLogLineBytes);
    EXPECT_EQ(Parsed(line).contains("truncated"), !Parsed(line).contains("after"));
  }
}

TEST(StderrLogger, WritesLinesFromItsThresholdUp) {
  const auto clock = NewSystemClock();
  const auto logger = NewStderrLogger(*clock, LogLevel::kWarning);
  testing::internal::CaptureStderr();
  logger->Debug("one");
  logger->Info("two");
  logger->Warning("three", {{"n", 3}});
  logger->Error("four");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 2);
  EXPECT_EQ(Parsed(written.substr(0, written.find('\n'))).at("event").as_string(), "three");
  EXPECT_NE(written.find("\"four\""), std::string::npos);
}

TEST(NullLogger, WritesNothing) {
  testing::internal::CaptureStderr();
  NewNullLogger()->Error("lost");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace vmonce
