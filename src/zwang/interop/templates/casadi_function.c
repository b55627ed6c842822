
/* $name: $summary */
$tables
EXPORTED casadi_int ${name}_n_in(void) { return $n_in; }
EXPORTED casadi_int ${name}_n_out(void) { return $n_out; }
EXPORTED const char *${name}_name_in(casadi_int i) { return 0 <= i && i < $n_in ? ${name}_names[i] : 0; }
EXPORTED const char *${name}_name_out(casadi_int i)
{
    return 0 <= i && i < $n_out ? ${name}_names[$n_in + i] : 0;
}
EXPORTED const casadi_int *${name}_sparsity_in(casadi_int i)
{
    return 0 <= i && i < $n_in ? ${name}_patterns[i] : 0;
}
EXPORTED const casadi_int *${name}_sparsity_out(casadi_int i)
{
    return 0 <= i && i < $n_out ? ${name}_patterns[$n_in + i] : 0;
}
EXPORTED int ${name}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w)
{
    if (sz_arg) *sz_arg = $n_in;
    if (sz_res) *sz_res = $n_out;
    if (sz_iw) *sz_iw = 0;
    if (sz_w) *sz_w = $work;
    return 0;
}
EXPORTED int ${name}(const double **arg, double **res, casadi_int *iw, double *w, int mem)
{
    (void)arg; (void)res; (void)iw; (void)w; (void)mem; (void)zeros;
$body
    return 0;
}
