// What is fuzzed: one function per parser, and one for the whole service. libFuzzer feeds them
// (tests/fuzz/main.cc), and a unit test feeds them the seeds (tests/fuzz/seeds_test.cc), so that
// they are built and run everywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vmonce::fuzz {

struct Target {
  std::string_view name;  // The folder of its seeds.
  // Takes any bytes, returns, and keeps nothing that the next call could see. A property that does
  // not hold is a CHECK.
  void (*run)(std::string_view input);
};

std::span<const Target> AllTargets();

// As RFC 9651 section 4.1.6 writes a string.
std::string Quoted(std::string_view value);

// Of the client and its files.
void FuzzAnswer(
    std::string_view input);  // Answers of a server, or of anything that stands in its place.
void FuzzIntentFile(std::string_view input);  // A kept create.

// Of what the service is configured with and reads back.
void FuzzConfiguration(std::string_view input);
void FuzzDomainXml(std::string_view input);
void FuzzNames(
    std::string_view input);  // Host URIs, markers, volumes, times, durations, networks, images.

// Of the ledger.
void FuzzStoredJson(std::string_view input);
void FuzzCursor(std::string_view input);

// Of what anybody can send.
void FuzzRequestBytes(std::string_view input);
void FuzzTarget(std::string_view input);  // Path and query.
void FuzzKeyHeader(std::string_view input);
void FuzzHeaders(std::string_view input);  // The others that mean something to the API.
void FuzzJson(std::string_view input);
void FuzzRequestBody(std::string_view input);
void FuzzService(std::string_view input);  // A series of requests to a whole service.

}  // namespace vmonce::fuzz
