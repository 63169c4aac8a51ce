// Doctor's findings for other commands.
#pragma once

#include "app/invocation.h"

namespace vmonce::app {

// After a create that could not reach a service on this computer, or that its hypervisor would not
// carry out: says on stderr what is wrong here, and its repair. Nothing when the server is
// elsewhere, or when all is well. `with_kvm`: look at the processor too, which takes seconds.
void SayWhatIsWrongHere(const Invocation& run, bool with_kvm);

}  // namespace vmonce::app
