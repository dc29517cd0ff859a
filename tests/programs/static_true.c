// build: -static
// Does nothing and succeeds; runs for about a millisecond.
int main(void)
{
    return 0;
}
