// What the start of every board calls.
#pragma once

// Answers frames without end. The board has cleared its memory and started its timer.
_Noreturn void firmware_run(void);
