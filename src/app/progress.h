// The steps of an operation as they happen: one live line on a terminal, one plain line a step
// elsewhere, with the time elapsed since the command began.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/terminal.h"
#include "base/clock.h"

namespace vmonce::app {

// "4.2 s", "3 min 20 s".
std::string Elapsed(Milliseconds duration);

// `messages` and `clock` outlive it.
class Progress final {
 public:
  Progress(Messages& messages, Clock& clock, Instant begin)
      : messages_(messages), clock_(clock), begin_(begin) {}

  // What the server says now: an OPERATION of the API.
  void Update(const boost::json::value& operation);
  // The live line stays as it is; nothing follows.
  void End() { messages_.KeepLive(); }

  Milliseconds SinceBegin();

 private:
  void UpdateOne(const boost::json::value& operation, const boost::json::value& item);
  void UpdateMany(const std::vector<boost::json::value>& items);
  bool HasReached(std::string_view step) const;
  void Reach(std::string_view step);
  void Note(std::string text, std::string& last);
  void Draw(std::string_view current);

  Messages& messages_;
  Clock& clock_;
  const Instant begin_;
  std::vector<std::pair<std::string, std::string>> reached_;  // Step done, and when.
  std::string last_plain_;
  std::string last_state_note_;
  std::string last_item_note_;
};

}  // namespace vmonce::app
