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

// Whether what Progress sees first has happened since the command began.
enum class ProgressOf {
  kOurs,     // The command asked for it: every step is news.
  kEarlier,  // It was under way, or done, before: what is past already is told as such.
};

// `messages` and `clock` outlive it.
class Progress final {
 public:
  Progress(Messages& messages, Clock& clock, Instant begin, ProgressOf of = ProgressOf::kOurs)
      : messages_(messages),
        clock_(clock),
        begin_(begin),
        is_catching_up_(of == ProgressOf::kEarlier) {}

  // What the server says now: an OPERATION of the API.
  void Update(const boost::json::value& operation);
  // The live line stays as it is; nothing follows.
  void End() { messages_.KeepLive(); }

  Milliseconds SinceBegin();

 private:
  // What was past at the first sight, in one line.
  void CatchUp();
  void UpdateOne(const boost::json::value& operation, const boost::json::value& item);
  void UpdateMany(const std::vector<boost::json::value>& items);
  bool HasReached(std::string_view step) const;
  void Reach(std::string_view step);
  void Note(std::string text, std::string& last);
  void Draw(std::string_view current);

  Messages& messages_;
  Clock& clock_;
  const Instant begin_;
  bool is_catching_up_;
  std::vector<std::pair<std::string, std::string>> reached_;  // Step done, and when.
  std::string last_plain_;
  std::string last_state_note_;
  std::string last_item_note_;
};

}  // namespace vmonce::app
