#include "engine/saga.h"

#include "base/check.h"

namespace vmonce::engine {

StepResult StepResult::Again(Milliseconds in, std::string memo, std::string detail) {
  StepResult result;
  result.kind = Kind::kAgain;
  result.again_in = in;
  result.memo = std::move(memo);
  result.detail = std::move(detail);
  return result;
}

StepResult StepResult::Unavailable(std::string code, std::string detail) {
  return {Kind::kUnavailable, std::move(detail), std::move(code)};
}

StepResult StepResult::Refused(std::string code, std::string detail) {
  return {Kind::kRefused, std::move(detail), std::move(code)};
}

StepResult StepResult::From(const Error& error) {
  switch (error.code) {
    case ErrorCode::kUnavailable: return Unavailable("hypervisor_unavailable", error.detail);
    case ErrorCode::kUnknown:
    case ErrorCode::kInternal: return {Kind::kUnknown, error.detail};
    case ErrorCode::kFenced: return {Kind::kFenced, error.detail};
    case ErrorCode::kConflict: return Refused("conflict", error.detail);
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
    case ErrorCode::kRefused: return Refused("hypervisor_refused", error.detail);
  }
  return {Kind::kUnknown, error.detail};
}

void SagaTable::Add(Saga saga) {
  CHECK(Find(saga.kind) == nullptr);
  CHECK(!saga.steps.empty());
  sagas_.push_back(std::move(saga));
}

const Saga* SagaTable::Find(model::OperationKind kind) const {
  for (const Saga& saga : sagas_) {
    if (saga.kind == kind) return &saga;
  }
  return nullptr;
}

}  // namespace vmonce::engine
