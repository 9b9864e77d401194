int kiln_stage_foreign(void);

#ifdef KILN_STAGE_LIBRARY
int kiln_stage_foreign(void) {
    return 0;
}
#else
int main(void) {
    return kiln_stage_foreign();
}
#endif
