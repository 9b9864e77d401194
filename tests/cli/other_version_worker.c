/* A compile worker as another version of kiln may bring one: it answers every request with a frame of another grammar. */
#include <unistd.h>

int main(void) {
    char request[4096];
    const char reply[64] = "kilnw0\0\0 not as this version has it";
    while (read(0, request, sizeof request) > 0) {
        if (write(1, reply, sizeof reply) < 0) {
            return 1;
        }
    }
    return 0;
}
