// The calls that have counts. Included twice: with int counts, and with those of the MPI_*_c functions of MPI-4.
// X(name): the function's name. COUNT: the type of counts. DISP: the type of displacements.

// --- point-to-point ---------------------------------------------------------------------------------------------------------

#define SEND(name, action)                                                                         \
  DEFINE(X(name), (const void *buf, COUNT n, MPI_Datatype type, int to, int tag, MPI_Comm comm)) { \
    CALL(X(name), (buf, n, type, to, tag, comm));                                                  \
    SIZE(r, bytes_of(n, type), 0);                                                                 \
    Comm *const c = comm_of(r, comm);                                                              \
    end_line(r, of_comm(point(line(r, action, 0), peer(c, to), tag, n, type), c));                 \
    return leave(r, rc);                                                                           \
  }
SEND(Send, "send")
SEND(Ssend, "Ssend")
SEND(Bsend, "bsend")
SEND(Rsend, "rsend")
#undef SEND

#define ISEND(name, action, lasting)                                                                                     \
  DEFINE(X(name), (const void *buf, COUNT n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)) { \
    CALL(X(name), (buf, n, type, to, tag, comm, request));                                                               \
    Comm *const c = comm_of(r, comm);                                                                                    \
    posted(r, action, c, REQ_SEND, peer(c, to), tag, n, type, request, lasting);                                         \
    return leave(r, rc);                                                                                                 \
  }
ISEND(Isend, "isend", false)
ISEND(Issend, "ISsend", false)
ISEND(Ibsend, "ibsend", false)
ISEND(Irsend, "irsend", false)
ISEND(Send_init, "sendInit", true)
ISEND(Ssend_init, "ssendInit", true)
ISEND(Bsend_init, "bsendInit", true)
ISEND(Rsend_init, "rsendInit", true)
#undef ISEND

#define IRECV(name, action, lasting)                                                                                 \
  DEFINE(X(name), (void *buf, COUNT n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)) { \
    CALL(X(name), (buf, n, type, from, tag, comm, request));                                                         \
    Comm *const c = comm_of(r, comm);                                                                                \
    posted(r, action, c, REQ_RECV, peer(c, from), tag_of(tag), n, type, request, lasting);                           \
    return leave(r, rc);                                                                                             \
  }
IRECV(Irecv, "irecv", false)
IRECV(Recv_init, "recvInit", true)
#undef IRECV

DEFINE(X(Recv), (void *buf, COUNT n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)) {
  MPI_Status own;
  const bool wild = from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
  if (wild && status == MPI_STATUS_IGNORE) status = &own;
  CALL(X(Recv), (buf, n, type, from, tag, comm, status));
  SIZE(r, 0, bytes_of(n, type));
  Comm *const c = comm_of(r, comm);
  char *p = point(line(r, "recv", 0), peer(c, from), tag_of(tag), n, type);
  if (wild) p = matched(p, c, status);
  end_line(r, of_comm(p, c));
  return leave(r, rc);
}

static char *X(exchange)(char *p, const Comm *c, int to, int stag, int64_t sn, MPI_Datatype st, int from, int rtag, int64_t rn, MPI_Datatype rt,
                         const MPI_Status *status) {
  const Data s = data_of(sn, st), d = data_of(rn, rt);
  p = num(num(num(num(num(num(p, s.count), peer(c, to)), d.count), peer(c, from)), s.code), d.code);
  if (stag != 0) p = ATTR(p, "stag", stag);
  if (rtag != 0) p = ATTR(p, "rtag", tag_of(rtag));
  if (from == MPI_ANY_SOURCE || rtag == MPI_ANY_TAG) p = matched(p, c, status);
  return of_comm(p, c);
}

DEFINE(X(Sendrecv), (const void *sbuf, COUNT sn, MPI_Datatype st, int to, int stag, void *rbuf, COUNT rn, MPI_Datatype rt, int from, int rtag,
                     MPI_Comm comm, MPI_Status *status)) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  CALL(X(Sendrecv), (sbuf, sn, st, to, stag, rbuf, rn, rt, from, rtag, comm, status));
  SIZE(r, bytes_of(sn, st), bytes_of(rn, rt));
  end_line(r, X(exchange)(line(r, "sendRecv", 0), comm_of(r, comm), to, stag, sn, st, from, rtag, rn, rt, status));
  return leave(r, rc);
}

DEFINE(X(Sendrecv_replace), (void *buf, COUNT n, MPI_Datatype type, int to, int stag, int from, int rtag, MPI_Comm comm, MPI_Status *status)) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  CALL(X(Sendrecv_replace), (buf, n, type, to, stag, from, rtag, comm, status));
  SIZE(r, bytes_of(n, type), 0);
  end_line(r, X(exchange)(line(r, "sendRecv", 0), comm_of(r, comm), to, stag, n, type, from, rtag, n, type, status));
  return leave(r, rc);
}

DEFINE(X(Mrecv), (void *buf, COUNT n, MPI_Datatype type, MPI_Message *message, MPI_Status *status)) {
  const MPI_Message handle = *message;
  CALL(X(Mrecv), (buf, n, type, message, status));
  SIZE(r, 0, bytes_of(n, type));
  const Message *const m = map_get(&r->messages, KEY(handle));
  if (m != NULL) end_line(r, of_comm(point(line(r, "recv", 0), m->source, m->tag, n, type), m->comm));
  return leave(r, rc);
}

DEFINE(X(Imrecv), (void *buf, COUNT n, MPI_Datatype type, MPI_Message *message, MPI_Request *request)) {
  const MPI_Message handle = *message;
  CALL(X(Imrecv), (buf, n, type, message, request));
  const Message *const m = map_get(&r->messages, KEY(handle));
  if (m != NULL) posted(r, "irecv", m->comm, REQ_RECV, m->source, m->tag, n, type, request, false);
  return leave(r, rc);
}

// --- collectives ------------------------------------------------------------------------------------------------------------
// Each has a blocking form and one with a request: BOTH generates them from the parameters, the arguments and the fields of the line.
// The last sees r, c (the communicator), p (the line so far), n (the other side's number of ranks); it advances p.

#define BOTH(name, iname, action, params, args, space, ...)                       \
  DEFINE(X(name), (UNPACK params, MPI_Comm comm)) {                               \
    CALL(X(name), (UNPACK args, comm));                                           \
    Comm *const c = comm_of(r, comm);                                             \
    const int n = c->inter ? c->remote_size : c->size;                            \
    char *p = line(r, action, (size_t)(space)*SPACE_EACH);                        \
    (void)n;                                                                      \
    __VA_ARGS__;                                                                  \
    end_line(r, of_comm(p, c));                                                   \
    return leave(r, rc);                                                          \
  }                                                                               \
  DEFINE(X(iname), (UNPACK params, MPI_Comm comm, MPI_Request * request)) {       \
    CALL(X(iname), (UNPACK args, comm, request));                                 \
    Comm *const c = comm_of(r, comm);                                             \
    const int n = c->inter ? c->remote_size : c->size;                            \
    char *p = line(r, "i" action, (size_t)(space)*SPACE_EACH);                    \
    (void)n;                                                                      \
    __VA_ARGS__;                                                                  \
    p = of_comm(p, c);                                                            \
    end_line(r, ATTR(p, "req", add_request(r, request, REQ_OTHER, c, 0, 0)->id)); \
    return leave(r, rc);                                                          \
  }
#define UNPACK(...) __VA_ARGS__

BOTH(Bcast, Ibcast, "bcast", (void *buf, COUNT cnt, MPI_Datatype type, int root), (buf, cnt, type, root), 0, {
  const Data d = data_of(c->inter && root == MPI_PROC_NULL ? 0 : cnt, type);
  SIZE(r, bytes_of(cnt, type), 0);
  p = num(num(num(p, d.count), root_of(c, root)), d.code);
})

BOTH(Reduce, Ireduce, "reduce", (const void *sbuf, void *rbuf, COUNT cnt, MPI_Datatype type, MPI_Op op, int root), (sbuf, rbuf, cnt, type, op, root),
     0, {
       const Data d = data_of(c->inter && root == MPI_PROC_NULL ? 0 : cnt, type);
       SIZE(r, bytes_of(cnt, type), 0);
       p = num(num(num(num(p, d.count), 0), root_of(c, root)), d.code);
     })

#define REDUCTION(name, iname, action)                                                                                                 \
  BOTH(name, iname, action, (const void *sbuf, void *rbuf, COUNT cnt, MPI_Datatype type, MPI_Op op), (sbuf, rbuf, cnt, type, op), 0, { \
    const Data d = data_of(cnt, type);                                                                                                 \
    SIZE(r, bytes_of(cnt, type), 0);                                                                                                   \
    p = num(num(num(p, d.count), 0), d.code);                                                                                          \
  })
REDUCTION(Allreduce, Iallreduce, "allreduce")
REDUCTION(Scan, Iscan, "scan")
REDUCTION(Exscan, Iexscan, "exscan")
REDUCTION(Reduce_scatter_block, Ireduce_scatter_block, "reducescatterblock")
#undef REDUCTION

// The counts cover the parts of all ranks of the local group; between groups their sum is what is transferred.
BOTH(Reduce_scatter, Ireduce_scatter, "reducescatter", (const void *sbuf, void *rbuf, const COUNT cnts[], MPI_Datatype type, MPI_Op op),
     (sbuf, rbuf, cnts, type, op), c->size, {
       const Data one = data_of(1, type);
       SIZE(r, vector_bytes(cnts, c->size, type), 0);
       for (int i = 0; i < c->size; i++) p = num(p, one.count * (int64_t)cnts[i]);
       p = num(num(p, 0), one.code);
     })

// Where the other side's arguments are not significant, the local side's are repeated: no reader needs them, and SMPI drops a count of 0.
BOTH(Gather, Igather, "gather", (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, COUNT rn, MPI_Datatype rt, int root),
     (sbuf, sn, st, rbuf, rn, rt, root), 0, {
       const bool root_here = at_root(c, root);
       const bool absent = c->inter && root == MPI_PROC_NULL;
       const Data mine = root_here && (c->inter || sbuf == MPI_IN_PLACE) ? data_of(rn, rt) : data_of(absent ? 0 : sn, absent ? MPI_BYTE : st);
       SIZE(r, root_here && (c->inter || sbuf == MPI_IN_PLACE) ? bytes_of(rn, rt) : absent ? 0 : bytes_of(sn, st), 0);
       p = fields_of(p, mine, root_here ? data_of(rn, rt) : mine, root_of(c, root));
     })

BOTH(Scatter, Iscatter, "scatter", (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, COUNT rn, MPI_Datatype rt, int root),
     (sbuf, sn, st, rbuf, rn, rt, root), 0, {
       const bool root_here = at_root(c, root);
       const bool absent = c->inter && root == MPI_PROC_NULL;
       const Data mine = root_here && (c->inter || rbuf == MPI_IN_PLACE) ? data_of(sn, st) : data_of(absent ? 0 : rn, absent ? MPI_BYTE : rt);
       SIZE(r, root_here ? bytes_of(sn, st) : absent ? 0 : bytes_of(rn, rt), 0);
       p = fields_of(p, root_here ? data_of(sn, st) : mine, mine, root_of(c, root));
     })

#define EVERYBODY(name, iname, action)                                                                                                               \
  BOTH(name, iname, action, (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, COUNT rn, MPI_Datatype rt), (sbuf, sn, st, rbuf, rn, rt), 0, { \
    const Data out = sbuf == MPI_IN_PLACE ? data_of(rn, rt) : data_of(sn, st);                                                                       \
    const Data in = data_of(rn, rt);                                                                                                                 \
    SIZE(r, sbuf == MPI_IN_PLACE ? bytes_of(rn, rt) : bytes_of(sn, st), bytes_of(rn, rt));                                                           \
    p = num(num(num(num(p, out.count), in.count), out.code), in.code);                                                                               \
  })
EVERYBODY(Allgather, Iallgather, "allgather")
EVERYBODY(Alltoall, Ialltoall, "alltoall")
EVERYBODY(Neighbor_allgather, Ineighbor_allgather, "neighbor_allgather")
EVERYBODY(Neighbor_alltoall, Ineighbor_alltoall, "neighbor_alltoall")
#undef EVERYBODY

BOTH(Gatherv, Igatherv, "gatherv",
     (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, const COUNT rn[], const DISP at[], MPI_Datatype rt, int root),
     (sbuf, sn, st, rbuf, rn, at, rt, root), n, {
       const bool root_here = at_root(c, root);
       const bool absent = c->inter && (root_here || root == MPI_PROC_NULL);
       const Data mine = root_here && !c->inter && sbuf == MPI_IN_PLACE ? data_of(rn[c->me], rt) : data_of(absent ? 0 : sn, absent ? MPI_BYTE : st);
       const Data each = root_here ? data_of(1, rt) : (Data){0, T_BYTE};
       SIZE(r,
            root_here && !c->inter && sbuf == MPI_IN_PLACE ? bytes_of(rn[c->me], rt)
            : absent                                       ? 0
                                                           : bytes_of(sn, st),
            root_here ? vector_bytes(rn, n, rt) : 0);
       p = num(p, mine.count);
       for (int i = 0; i < n; i++) p = num(p, root_here ? each.count * (int64_t)rn[i] : 0);
       p = num(num(num(p, root_of(c, root)), mine.code), each.code);
     })

BOTH(Scatterv, Iscatterv, "scatterv",
     (const void *sbuf, const COUNT sn[], const DISP at[], MPI_Datatype st, void *rbuf, COUNT rn, MPI_Datatype rt, int root),
     (sbuf, sn, at, st, rbuf, rn, rt, root), n, {
       const bool root_here = at_root(c, root);
       const bool absent = c->inter && (root_here || root == MPI_PROC_NULL);
       const Data mine = root_here && !c->inter && rbuf == MPI_IN_PLACE ? data_of(sn[c->me], st) : data_of(absent ? 0 : rn, absent ? MPI_BYTE : rt);
       const Data each = root_here ? data_of(1, st) : (Data){0, T_BYTE};
       SIZE(r, root_here ? vector_bytes(sn, n, st) : 0, absent ? 0 : bytes_of(rn, rt));
       for (int i = 0; i < n; i++) p = num(p, root_here ? each.count * (int64_t)sn[i] : 0);
       p = num(num(num(num(p, mine.count), root_of(c, root)), each.code), mine.code);
     })

#define TO_ALL(name, iname, action, sources)                                                                                               \
  BOTH(name, iname, action, (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, const COUNT rn[], const DISP at[], MPI_Datatype rt), \
       (sbuf, sn, st, rbuf, rn, at, rt), sources, {                                                                                        \
         const Data in = data_of(1, rt);                                                                                                   \
         const Data out = sbuf == MPI_IN_PLACE ? data_of(rn[c->me], rt) : data_of(sn, st);                                                 \
         SIZE(r, sbuf == MPI_IN_PLACE ? bytes_of(rn[c->me], rt) : bytes_of(sn, st), vector_bytes(rn, sources, rt));                        \
         p = num(p, out.count);                                                                                                            \
         for (int i = 0; i < (sources); i++) p = num(p, in.count * (int64_t)rn[i]);                                                        \
         p = num(num(p, out.code), in.code);                                                                                               \
       })
TO_ALL(Allgatherv, Iallgatherv, "allgatherv", n)
TO_ALL(Neighbor_allgatherv, Ineighbor_allgatherv, "neighbor_allgatherv", c->in)
#undef TO_ALL

BOTH(Alltoallv, Ialltoallv, "alltoallv",
     (const void *sbuf, const COUNT sn[], const DISP sat[], MPI_Datatype st, void *rbuf, const COUNT rn[], const DISP rat[], MPI_Datatype rt),
     (sbuf, sn, sat, st, rbuf, rn, rat, rt), 2 * n + 2, {
       const bool in_place = sbuf == MPI_IN_PLACE;
       const Data out = data_of(1, in_place ? rt : st);
       const Data in = data_of(1, rt);
       const COUNT *const counts = in_place ? rn : sn;
       SIZE(r, vector_bytes(counts, n, in_place ? rt : st), vector_bytes(rn, n, rt));
       p = vector(p, counts, n, out.count, true);
       p = vector(p, rn, n, in.count, true);
       p = num(num(p, out.code), in.code);
     })

BOTH(Neighbor_alltoallv, Ineighbor_alltoallv, "neighbor_alltoallv",
     (const void *sbuf, const COUNT sn[], const DISP sat[], MPI_Datatype st, void *rbuf, const COUNT rn[], const DISP rat[], MPI_Datatype rt),
     (sbuf, sn, sat, st, rbuf, rn, rat, rt), c->in + c->out, {
       const Data out = data_of(1, st);
       const Data in = data_of(1, rt);
       SIZE(r, vector_bytes(sn, c->out, st), vector_bytes(rn, c->in, rt));
       p = vector(p, sn, c->out, out.count, false);
       p = vector(p, rn, c->in, in.count, false);
       p = num(num(p, out.code), in.code);
     })

BOTH(Alltoallw, Ialltoallw, "alltoallw",
     (const void *sbuf, const COUNT sn[], const DISP sat[], const MPI_Datatype st[], void *rbuf, const COUNT rn[], const DISP rat[],
      const MPI_Datatype rt[]),
     (sbuf, sn, sat, st, rbuf, rn, rat, rt), 2 * n, {
       const bool in_place = sbuf == MPI_IN_PLACE;
       SIZE(r, each_bytes(in_place ? rn : sn, n, in_place ? rt : st), each_bytes(rn, n, rt));
       for (int i = 0; i < n; i++) p = num(p, in_place ? bytes_of((int64_t)rn[i], rt[i]) : bytes_of((int64_t)sn[i], st[i]));
       for (int i = 0; i < n; i++) p = num(p, bytes_of((int64_t)rn[i], rt[i]));
     })

BOTH(Neighbor_alltoallw, Ineighbor_alltoallw, "neighbor_alltoallw",
     (const void *sbuf, const COUNT sn[], const MPI_Aint sat[], const MPI_Datatype st[], void *rbuf, const COUNT rn[], const MPI_Aint rat[],
      const MPI_Datatype rt[]),
     (sbuf, sn, sat, st, rbuf, rn, rat, rt), c->in + c->out, {
       SIZE(r, each_bytes(sn, c->out, st), each_bytes(rn, c->in, rt));
       for (int i = 0; i < c->out; i++) p = num(p, bytes_of((int64_t)sn[i], st[i]));
       for (int i = 0; i < c->in; i++) p = num(p, bytes_of((int64_t)rn[i], rt[i]));
     })

// --- one-sided --------------------------------------------------------------------------------------------------------------

#define ONE_SIDED(name, rname, params, args, cnt, typ)                                          \
  DEFINE(X(name), (UNPACK params, MPI_Win handle)) {                                            \
    CALL(X(name), (UNPACK args, handle));                                                       \
    SIZE(r, bytes_of(cnt, typ), 0);                                                             \
    const Win *const w = window_of(r, handle);                                                  \
    end_line(r, ATTR(point(line(r, #name, 0), peer(w->comm, to), 0, cnt, typ), "win", w->id));  \
    return leave(r, rc);                                                                        \
  }                                                                                             \
  DEFINE(X(rname), (UNPACK params, MPI_Win handle, MPI_Request * request)) {                    \
    CALL(X(rname), (UNPACK args, handle, request));                                             \
    SIZE(r, bytes_of(cnt, typ), 0);                                                             \
    const Win *const w = window_of(r, handle);                                                  \
    char *p = ATTR(point(line(r, #rname, 0), peer(w->comm, to), 0, cnt, typ), "win", w->id);    \
    end_line(r, ATTR(p, "req", add_request(r, request, REQ_OTHER, (Comm *)w->comm, 0, 0)->id)); \
    return leave(r, rc);                                                                        \
  }
ONE_SIDED(Put, Rput, (const void *buf, COUNT n, MPI_Datatype type, int to, MPI_Aint at, COUNT tn, MPI_Datatype tt), (buf, n, type, to, at, tn, tt), n,
          type)
ONE_SIDED(Get, Rget, (void *buf, COUNT n, MPI_Datatype type, int to, MPI_Aint at, COUNT tn, MPI_Datatype tt), (buf, n, type, to, at, tn, tt), n, type)
ONE_SIDED(Accumulate, Raccumulate, (const void *buf, COUNT n, MPI_Datatype type, int to, MPI_Aint at, COUNT tn, MPI_Datatype tt, MPI_Op op),
          (buf, n, type, to, at, tn, tt, op), n, type)
ONE_SIDED(Get_accumulate, Rget_accumulate,
          (const void *buf, COUNT n, MPI_Datatype type, void *result, COUNT rn, MPI_Datatype rt, int to, MPI_Aint at, COUNT tn, MPI_Datatype tt,
           MPI_Op op),
          (buf, n, type, result, rn, rt, to, at, tn, tt, op), rn, rt)
#undef ONE_SIDED

// --- MPI-IO: counted, so that a reader refuses these calls with their number ---------------------------------------------------

#define FILE_CALL(name, params, args) \
  DEFINE(X(name), params) {           \
    CALL(X(name), args);              \
    file_line(r, #name, n, type);     \
    return leave(r, rc);              \
  }
#define FILE_ICALL(name, params, args)                       \
  DEFINE(X(name), params) {                                  \
    CALL(X(name), args);                                     \
    file_line(r, #name, n, type);                            \
    add_request(r, request, REQ_SILENT, r->everybody, 0, 0); \
    return leave(r, rc);                                     \
  }
#define READ(name) FILE_CALL(name, (MPI_File f, void *buf, COUNT n, MPI_Datatype type, MPI_Status *s), (f, buf, n, type, s))
#define WRITE(name) FILE_CALL(name, (MPI_File f, const void *buf, COUNT n, MPI_Datatype type, MPI_Status *s), (f, buf, n, type, s))
#define READ_AT(name) FILE_CALL(name, (MPI_File f, MPI_Offset o, void *buf, COUNT n, MPI_Datatype type, MPI_Status *s), (f, o, buf, n, type, s))
#define WRITE_AT(name) \
  FILE_CALL(name, (MPI_File f, MPI_Offset o, const void *buf, COUNT n, MPI_Datatype type, MPI_Status *s), (f, o, buf, n, type, s))
#define IREAD(name) FILE_ICALL(name, (MPI_File f, void *buf, COUNT n, MPI_Datatype type, MPI_Request *request), (f, buf, n, type, request))
#define IWRITE(name) FILE_ICALL(name, (MPI_File f, const void *buf, COUNT n, MPI_Datatype type, MPI_Request *request), (f, buf, n, type, request))
#define IREAD_AT(name) \
  FILE_ICALL(name, (MPI_File f, MPI_Offset o, void *buf, COUNT n, MPI_Datatype type, MPI_Request *request), (f, o, buf, n, type, request))
#define IWRITE_AT(name) \
  FILE_ICALL(name, (MPI_File f, MPI_Offset o, const void *buf, COUNT n, MPI_Datatype type, MPI_Request *request), (f, o, buf, n, type, request))
READ(File_read)
READ(File_read_all)
READ(File_read_shared)
READ(File_read_ordered)
READ_AT(File_read_at)
READ_AT(File_read_at_all)
WRITE(File_write)
WRITE(File_write_all)
WRITE(File_write_shared)
WRITE(File_write_ordered)
WRITE_AT(File_write_at)
WRITE_AT(File_write_at_all)
IREAD(File_iread)
IREAD(File_iread_all)
IREAD(File_iread_shared)
IREAD_AT(File_iread_at)
IREAD_AT(File_iread_at_all)
IWRITE(File_iwrite)
IWRITE(File_iwrite_all)
IWRITE(File_iwrite_shared)
IWRITE_AT(File_iwrite_at)
IWRITE_AT(File_iwrite_at_all)
#undef FILE_CALL
#undef FILE_ICALL
#undef READ
#undef WRITE
#undef READ_AT
#undef WRITE_AT
#undef IREAD
#undef IWRITE
#undef IREAD_AT
#undef IWRITE_AT

#define BEGIN(name, params, args) \
  DEFINE(X(name), params) {       \
    CALL(X(name), args);          \
    file_line(r, #name, n, type); \
    return leave(r, rc);          \
  }
BEGIN(File_read_all_begin, (MPI_File f, void *buf, COUNT n, MPI_Datatype type), (f, buf, n, type))
BEGIN(File_write_all_begin, (MPI_File f, const void *buf, COUNT n, MPI_Datatype type), (f, buf, n, type))
BEGIN(File_read_ordered_begin, (MPI_File f, void *buf, COUNT n, MPI_Datatype type), (f, buf, n, type))
BEGIN(File_write_ordered_begin, (MPI_File f, const void *buf, COUNT n, MPI_Datatype type), (f, buf, n, type))
BEGIN(File_read_at_all_begin, (MPI_File f, MPI_Offset o, void *buf, COUNT n, MPI_Datatype type), (f, o, buf, n, type))
BEGIN(File_write_at_all_begin, (MPI_File f, MPI_Offset o, const void *buf, COUNT n, MPI_Datatype type), (f, o, buf, n, type))
#undef BEGIN

// --- calls that the format cannot express -----------------------------------------------------------------------------------

#ifdef HAVE_Isendrecv
DEFINE(X(Isendrecv), (const void *sbuf, COUNT sn, MPI_Datatype st, int to, int stag, void *rbuf, COUNT rn, MPI_Datatype rt, int from, int rtag,
                      MPI_Comm comm, MPI_Request *request)) {
  CALL(X(Isendrecv), (sbuf, sn, st, to, stag, rbuf, rn, rt, from, rtag, comm, request));
  return beyond(r, "isendRecv", request);
}
DEFINE(X(Isendrecv_replace), (void *buf, COUNT n, MPI_Datatype type, int to, int stag, int from, int rtag, MPI_Comm comm, MPI_Request *request)) {
  CALL(X(Isendrecv_replace), (buf, n, type, to, stag, from, rtag, comm, request));
  return beyond(r, "isendRecv", request);
}
#endif
#ifdef HAVE_Bcast_init
#define LASTING(name, params, args)                                        \
  DEFINE(X(name), (UNPACK params, MPI_Info info, MPI_Request * request)) { \
    CALL(X(name), (UNPACK args, info, request));                           \
    return beyond(r, "persistentCollective", request);                     \
  }
#define SAME (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, COUNT rn, MPI_Datatype rt, MPI_Comm comm)
#define SAME_ARGS (sbuf, sn, st, rbuf, rn, rt, comm)
#define ROOTED (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, COUNT rn, MPI_Datatype rt, int root, MPI_Comm comm)
#define ROOTED_ARGS (sbuf, sn, st, rbuf, rn, rt, root, comm)
#define OPERATED (const void *sbuf, void *rbuf, COUNT n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
#define OPERATED_ARGS (sbuf, rbuf, n, type, op, comm)
LASTING(Bcast_init, (void *buf, COUNT n, MPI_Datatype type, int root, MPI_Comm comm), (buf, n, type, root, comm))
LASTING(Reduce_init, (const void *sbuf, void *rbuf, COUNT n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
        (sbuf, rbuf, n, type, op, root, comm))
LASTING(Allreduce_init, OPERATED, OPERATED_ARGS)
LASTING(Scan_init, OPERATED, OPERATED_ARGS)
LASTING(Exscan_init, OPERATED, OPERATED_ARGS)
LASTING(Reduce_scatter_block_init, OPERATED, OPERATED_ARGS)
LASTING(Reduce_scatter_init, (const void *sbuf, void *rbuf, const COUNT n[], MPI_Datatype type, MPI_Op op, MPI_Comm comm), OPERATED_ARGS)
LASTING(Gather_init, ROOTED, ROOTED_ARGS)
LASTING(Scatter_init, ROOTED, ROOTED_ARGS)
LASTING(Allgather_init, SAME, SAME_ARGS)
LASTING(Alltoall_init, SAME, SAME_ARGS)
LASTING(Neighbor_allgather_init, SAME, SAME_ARGS)
LASTING(Neighbor_alltoall_init, SAME, SAME_ARGS)
LASTING(Gatherv_init,
        (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, const COUNT rn[], const DISP at[], MPI_Datatype rt, int root, MPI_Comm comm),
        (sbuf, sn, st, rbuf, rn, at, rt, root, comm))
LASTING(Scatterv_init,
        (const void *sbuf, const COUNT sn[], const DISP at[], MPI_Datatype st, void *rbuf, COUNT rn, MPI_Datatype rt, int root, MPI_Comm comm),
        (sbuf, sn, at, st, rbuf, rn, rt, root, comm))
LASTING(Allgatherv_init, (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, const COUNT rn[], const DISP at[], MPI_Datatype rt, MPI_Comm comm),
        (sbuf, sn, st, rbuf, rn, at, rt, comm))
LASTING(Neighbor_allgatherv_init,
        (const void *sbuf, COUNT sn, MPI_Datatype st, void *rbuf, const COUNT rn[], const DISP at[], MPI_Datatype rt, MPI_Comm comm),
        (sbuf, sn, st, rbuf, rn, at, rt, comm))
#define VECTORS                                                                                                                            \
  (const void *sbuf, const COUNT sn[], const DISP sat[], MPI_Datatype st, void *rbuf, const COUNT rn[], const DISP rat[], MPI_Datatype rt, \
   MPI_Comm comm)
#define VECTORS_ARGS (sbuf, sn, sat, st, rbuf, rn, rat, rt, comm)
LASTING(Alltoallv_init, VECTORS, VECTORS_ARGS)
LASTING(Neighbor_alltoallv_init, VECTORS, VECTORS_ARGS)
LASTING(Alltoallw_init,
        (const void *sbuf, const COUNT sn[], const DISP sat[], const MPI_Datatype st[], void *rbuf, const COUNT rn[], const DISP rat[],
         const MPI_Datatype rt[], MPI_Comm comm),
        VECTORS_ARGS)
LASTING(Neighbor_alltoallw_init,
        (const void *sbuf, const COUNT sn[], const MPI_Aint sat[], const MPI_Datatype st[], void *rbuf, const COUNT rn[], const MPI_Aint rat[],
         const MPI_Datatype rt[], MPI_Comm comm),
        VECTORS_ARGS)
#undef LASTING
#undef SAME
#undef SAME_ARGS
#undef ROOTED
#undef ROOTED_ARGS
#undef OPERATED
#undef OPERATED_ARGS
#undef VECTORS
#undef VECTORS_ARGS
#endif
#undef BOTH
#undef UNPACK
