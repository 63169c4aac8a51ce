// Somebody who wants machines: sends requests with keys of its own, loses answers, asks again
// anywhere, and believes what it is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "service/vm_service.h"
#include "sim/oracle.h"

namespace vmonce::sim {

struct Stage;
class Replica;

class Client {
 public:
  // Both outlive it.
  Client(Stage& stage, std::vector<std::unique_ptr<Replica>>& replicas, int number);

  // On a fiber of its own: makes its requests, one after the other.
  void Run();
  bool IsDone() const { return is_done_; }
  // Each of its keys once more, until it is answered. True: all were.
  bool AskAllAgain();

 private:
  struct Create {
    KeyStory* key;
    model::CreateIntent intent;
    int body = 0;
  };

  void MakeOne(int number);
  // Sends it until somebody answers for good, or patience ends; answers what was told last.
  std::optional<service::Outcome> SendCreate(const Create& create, int tries);
  std::optional<service::Outcome> SendOnce(const Create& create);
  void Flood(const Create& create);
  void SendOtherBody(Create create);
  void CrossWithDelete(const model::VmId& vm);
  void CrossWithPatch(const model::VmId& vm);
  void Change(service::ChangeRequest::Kind kind, const model::VmId& vm);
  void Cancel(const model::OperationId& operation);
  service::CreateRequest RequestOf(const Create& create) const;
  // Hands `call` to some replica and waits for its answer; absent when none came.
  std::optional<service::Outcome> Ask(std::function<void(service::VmService&, service::Done)> call,
                                      Milliseconds patience);
  void Pause(std::int64_t least_ms, std::int64_t most_ms);

  Stage& stage_;
  std::vector<std::unique_ptr<Replica>>& replicas_;
  const std::string name_;
  const model::ProjectId project_;
  std::vector<Create> made_;
  bool is_done_ = false;
};

}  // namespace vmonce::sim
