// What has to be done when the process exits, from a program or from a shared library of ours.
#pragma once

namespace kiln {

// Has `function` called when the process exits by exit() or by the end of main: after what was registered
// later, before what was registered earlier. Unlike std::atexit() it works in a library whose static objects
// are never destroyed (keep_static_objects.cpp), too, and is not called when such a library is closed. Thread
// safe.
void call_at_exit(void (*function)());

}  // namespace kiln
