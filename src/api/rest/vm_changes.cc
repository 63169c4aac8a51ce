// What changes VMs: create, update, delete, power.
#include "api/rest/handlers.h"
#include "api/rest/parse_body.h"
#include "api/rest/reply.h"

namespace vmonce::rest {
namespace {

using service::ChangeRequest;

Telling TellingOf(const Face& face, std::chrono::seconds asked) {
  const std::chrono::seconds wait = std::min(asked, face.parts.capabilities.wait_cap);
  return {face.parts.step_name, face.parts.clock.Now(), wait};
}

void Change(const FacePointer& face, const http::Request& request, const http::Responder& respond,
            ChangeRequest::Kind kind) {
  Parsed<ChangeRequest> change = ParseChange(request, kind);
  if (!change) {
    respond(Reply(change.error()));
    return;
  }
  const std::chrono::seconds wait = change->asked.wait;
  face->parts.vms.Change(
      std::move(*change), [face, respond, wait](const service::Outcome& outcome) {
        respond(outcome ? ReplyChange(*outcome, TellingOf(*face, wait)) : Reply(outcome.error()));
      });
}

http::Response AnswerCreate(Face& face, const service::Outcome& outcome, std::chrono::seconds wait,
                            const Digest& request) {
  if (!outcome) return Reply(outcome.error());
  http::Response response = ReplyCreate(*outcome, TellingOf(face, wait));
  if (!outcome->reading) return response;
  if (const http::WrittenPointer written = http::Write(response)) {
    face.repeats.Put(request, {*written, *outcome->reading});
  }
  return response;
}

}  // namespace

void CreateVm(const FacePointer& face, http::Request request, http::Responder respond) {
  const Digest digest = DigestOfCreate(request);
  const auto repeated = face->repeats.Find(digest);
  if (repeated && face->parts.vms.Repeat(repeated->reading)) {
    respond(http::WrittenPointer(repeated, &repeated->response));
    return;
  }
  Parsed<ParsedCreate> create = ParseCreate(request, face->parts.sealer);
  if (!create) {
    respond(Reply(create.error()));
    return;
  }
  if (create->is_dry_run) {
    const auto would = face->parts.vms.WouldCreate(create->request);
    respond(would ? ReplyDryRun(*would, face->parts.step_name) : Reply(would.error()));
    return;
  }
  const std::chrono::seconds wait = create->request.asked.wait;
  face->parts.vms.Create(std::move(create->request),
                         [face, respond, wait, digest](service::Outcome outcome) {
                           // Written on the io thread: on this one the next claims wait.
                           respond([face, wait, digest, outcome = std::move(outcome)] {
                             return AnswerCreate(*face, outcome, wait, digest);
                           });
                         });
}

void UpdateVm(const FacePointer& face, http::Request request, http::Responder respond) {
  Change(face, request, respond, ChangeRequest::Kind::kUpdate);
}

void DeleteVm(const FacePointer& face, http::Request request, http::Responder respond) {
  Change(face, request, respond, ChangeRequest::Kind::kDelete);
}

void StartVm(const FacePointer& face, http::Request request, http::Responder respond) {
  Change(face, request, respond, ChangeRequest::Kind::kStart);
}

void StopVm(const FacePointer& face, http::Request request, http::Responder respond) {
  Change(face, request, respond, ChangeRequest::Kind::kStop);
}

void RebootVm(const FacePointer& face, http::Request request, http::Responder respond) {
  Change(face, request, respond, ChangeRequest::Kind::kReboot);
}

void CancelOperation(const FacePointer& face, http::Request request, http::Responder respond) {
  const Parsed<model::OperationId> id = ParseOperationId(request);
  if (!id) {
    respond(Reply(id.error()));
    return;
  }
  Parsed<service::Asked> asked = ParseBare(request, OperationUrl(*id) + "/cancel");
  if (!asked) {
    respond(Reply(asked.error()));
    return;
  }
  const std::chrono::seconds wait = asked->wait;
  face->parts.vms.Cancel(
      std::move(*asked), *id, [face, respond, wait](const service::Outcome& outcome) {
        respond(outcome ? ReplyChange(*outcome, TellingOf(*face, wait)) : Reply(outcome.error()));
      });
}

}  // namespace vmonce::rest
