// Asks for 10 blocks of 123456 bytes and for 20 of 1000, touches none, and frees all.
#include <stdlib.h>

int main(void)
{
    for (int i = 0; i < 30; i++) {
        void *volatile block = malloc(i % 3 == 0 ? 123456 : 1000);
        free(block);
    }
    return 0;
}
