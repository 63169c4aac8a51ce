// The handlers of the routes. Those that read the ledger block and run on the pool; the others only
// queue and may run on the io thread (routes.cc says which).
#pragma once

#include <atomic>
#include <memory>

#include "api/rest/gate.h"
#include "api/rest/repeats.h"
#include "api/rest/rest.h"
#include "http/handler.h"
#include "model/work_limits.h"

namespace vmonce::rest {

struct Face {
  explicit Face(RestParts p)
      : parts(std::move(p)),
        gate(parts.authenticator, parts.clock, parts.logger, parts.rate),
        repeats(parts.threads, model::limits::kRepeatedAnswerBytes) {}
  const RestParts parts;
  Gate gate;
  Repeats repeats;
  // Of the threads that read for everybody, sweeps on demand hold one at most.
  std::atomic<bool> is_sweeping = false;
};
// Shared: an answer of the service may come after the server and its routes are gone.
using FacePointer = std::shared_ptr<Face>;

using Handle = void (*)(const FacePointer&, http::Request, http::Responder);

void CreateVm(const FacePointer& face, http::Request request, http::Responder respond);
void ListVms(const FacePointer& face, http::Request request, http::Responder respond);
void GetVm(const FacePointer& face, http::Request request, http::Responder respond);
void UpdateVm(const FacePointer& face, http::Request request, http::Responder respond);
void DeleteVm(const FacePointer& face, http::Request request, http::Responder respond);
void StartVm(const FacePointer& face, http::Request request, http::Responder respond);
void StopVm(const FacePointer& face, http::Request request, http::Responder respond);
void RebootVm(const FacePointer& face, http::Request request, http::Responder respond);
void GetConsole(const FacePointer& face, http::Request request, http::Responder respond);

void ListOperations(const FacePointer& face, http::Request request, http::Responder respond);
void GetOperation(const FacePointer& face, http::Request request, http::Responder respond);
void GetTimeline(const FacePointer& face, http::Request request, http::Responder respond);
void CancelOperation(const FacePointer& face, http::Request request, http::Responder respond);

void ListImages(const FacePointer& face, http::Request request, http::Responder respond);
void AddImage(const FacePointer& face, http::Request request, http::Responder respond);
void RemoveImage(const FacePointer& face, http::Request request, http::Responder respond);
void PutImageFile(const FacePointer& face, http::Request request, http::Responder respond);
void DeleteImageFile(const FacePointer& face, http::Request request, http::Responder respond);
void ListHosts(const FacePointer& face, http::Request request, http::Responder respond);
void DrainHost(const FacePointer& face, http::Request request, http::Responder respond);
void ActivateHost(const FacePointer& face, http::Request request, http::Responder respond);
void DeclareHostDead(const FacePointer& face, http::Request request, http::Responder respond);
void Reconcile(const FacePointer& face, http::Request request, http::Responder respond);

void ReleaseKey(const FacePointer& face, http::Request request, http::Responder respond);
void ListTokens(const FacePointer& face, http::Request request, http::Responder respond);
void CreateToken(const FacePointer& face, http::Request request, http::Responder respond);
void RevokeToken(const FacePointer& face, http::Request request, http::Responder respond);

void GetCapabilities(const FacePointer& face, http::Request request, http::Responder respond);
void GetQuota(const FacePointer& face, http::Request request, http::Responder respond);
void GetContract(const FacePointer& face, http::Request request, http::Responder respond);
void GetHealth(const FacePointer& face, http::Request request, http::Responder respond);
void GetReadiness(const FacePointer& face, http::Request request, http::Responder respond);
void GetMetrics(const FacePointer& face, http::Request request, http::Responder respond);

}  // namespace vmonce::rest
