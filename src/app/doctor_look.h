// Looks at this computer for `vmonce doctor`.
#pragma once

#include "app/doctor_facts.h"
#include "app/terminal.h"
#include "base/clock.h"

namespace vmonce::app {

// Reads files, connects to libvirt's socket, and runs virsh, nft and the KVM probe, each with a
// deadline; changes nothing. Blocks up to some 20 s when everything hangs. `environment` is that of
// the person.
DoctorFacts LookAtThisMachine(const LookRequest& request, Clock& clock, const Environ& environment);

}  // namespace vmonce::app
