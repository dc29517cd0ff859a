// build: -static
// Does nothing, successfully; lives for about a millisecond.
int main(void)
{
    return 0;
}
