"""Layout of a DUMPI record: the arguments of every MPI call in file order.

Facts of the format (sst-dumpi, ``docs/traceformat.dox`` and its list of calls): each row has the call's number, its name and its
arguments. Arguments that the import uses have a name. All numbers are big-endian.

    i 32 bits   h 16 bits   b 8 bits   q 64 bits        signed
    I H B       an array: its length in 32 bits, then 32-, 16- or 8-bit numbers
    C           an array of characters;  K an array of these;  L an array of K;  J an array of I
    S           statuses, present when the record's mask says so
    A           the arguments of MPI_Init: K, with the count twice before version 0.6.2
    X Y         I; a single i before 0.6.9 (X) and 0.6.8 (Y)
    ?           only on the root: where ``root`` equals ``commrank``
    -           call numbers that never occur in a record
"""

from __future__ import annotations

__all__ = ["LAYOUT", "layouts"]

LAYOUT = """
0 Send count:i datatype:h dest:i tag:i comm:h
1 Recv count:i datatype:h source:i tag:i comm:h status:S
2 Get_count S h i
3 Bsend count:i datatype:h dest:i tag:i comm:h
4 Ssend count:i datatype:h dest:i tag:i comm:h
5 Rsend count:i datatype:h dest:i tag:i comm:h
6 Buffer_attach i
7 Buffer_detach i
8 Isend count:i datatype:h dest:i tag:i comm:h request:i
9 Ibsend count:i datatype:h dest:i tag:i comm:h request:i
10 Issend count:i datatype:h dest:i tag:i comm:h request:i
11 Irsend count:i datatype:h dest:i tag:i comm:h request:i
12 Irecv count:i datatype:h source:i tag:i comm:h request:i
13 Wait request:i status:S
14 Test request:i flag:i status:S
15 Request_free request:i
16 Waitany count:i requests:I index:i status:S
17 Testany count:i requests:I index:i flag:i status:S
18 Waitall count:i requests:I statuses:S
19 Testall count:i requests:I flag:i statuses:S
20 Waitsome count:i requests:I outcount:i indices:I statuses:S
21 Testsome count:i requests:I outcount:i indices:I statuses:S
22 Iprobe source:i tag:i comm:h flag:i status:S
23 Probe source:i tag:i comm:h status:S
24 Cancel request:i
25 Test_cancelled S i
26 Send_init count:i datatype:h dest:i tag:i comm:h request:i
27 Bsend_init count:i datatype:h dest:i tag:i comm:h request:i
28 Ssend_init count:i datatype:h dest:i tag:i comm:h request:i
29 Rsend_init count:i datatype:h dest:i tag:i comm:h request:i
30 Recv_init count:i datatype:h source:i tag:i comm:h request:i
31 Start request:i
32 Startall count:i requests:I
33 Sendrecv sendcount:i sendtype:h dest:i sendtag:i recvcount:i recvtype:h source:i recvtag:i comm:h status:S
34 Sendrecv_replace count:i datatype:h dest:i sendtag:i source:i recvtag:i comm:h status:S
35 Type_contiguous count:i oldtype:h newtype:h
36 Type_vector count:i blocklength:i stride:i oldtype:h newtype:h
37 Type_hvector count:i blocklength:i stride:i oldtype:h newtype:h
38 Type_indexed count:i lengths:I indices:I oldtype:h newtype:h
39 Type_hindexed count:i lengths:I indices:I oldtype:h newtype:h
40 Type_struct count:i lengths:I indices:X oldtypes:H newtype:h
41 Address i
42 Type_extent h i
43 Type_size datatype:h size:i
44 Type_lb h i
45 Type_ub h i
46 Type_commit h
47 Type_free h
48 Get_elements S h i
49 Pack i h i i i h
50 Unpack i i i i h h
51 Pack_size i h h i
52 Barrier comm:h
53 Bcast count:i datatype:h root:i comm:h
54 Gather commrank:i sendcount:i sendtype:h root:i comm:h ?recvcount:i ?recvtype:h
55 Gatherv commrank:i commsize:i sendcount:i sendtype:h root:i comm:h ?recvcounts:I ?displs:I recvtype:h
56 Scatter commrank:i recvcount:i recvtype:h root:i comm:h ?sendcount:i ?sendtype:h
57 Scatterv commrank:i commsize:i sendtype:h recvcount:i recvtype:h root:i comm:h ?sendcounts:I ?displs:I
58 Allgather sendcount:i sendtype:h recvcount:i recvtype:h comm:h
59 Allgatherv commsize:i sendcount:i sendtype:h recvcounts:I displs:I recvtype:h comm:h
60 Alltoall sendcount:i sendtype:h recvcount:i recvtype:h comm:h
61 Alltoallv commsize:i sendcounts:I senddispls:I sendtype:h recvcounts:I recvdispls:I recvtype:h comm:h
62 Reduce count:i datatype:h op:b root:i comm:h
63 Op_create i b
64 Op_free b
65 Allreduce count:i datatype:h op:b comm:h
66 Reduce_scatter commsize:i recvcounts:I datatype:h op:b comm:h
67 Scan count:i datatype:h op:b comm:h
68 Group_size h i
69 Group_rank h i
70 Group_translate_ranks h i I h I
71 Group_compare h h b
72 Comm_group comm:h group:h
73 Group_union group1:h group2:h newgroup:h
74 Group_intersection group1:h group2:h newgroup:h
75 Group_difference group1:h group2:h newgroup:h
76 Group_incl group:h count:i ranks:I newgroup:h
77 Group_excl group:h count:i ranks:I newgroup:h
78 Group_range_incl group:h count:i ranges:J newgroup:h
79 Group_range_excl group:h count:i ranges:J newgroup:h
80 Group_free group:h
81 Comm_size comm:h size:i
82 Comm_rank comm:h rank:i
83 Comm_compare h h b
84 Comm_dup oldcomm:h newcomm:h
85 Comm_create oldcomm:h group:h newcomm:h
86 Comm_split oldcomm:h color:i key:i newcomm:h
87 Comm_free comm:h
88 Comm_test_inter h i
89 Comm_remote_size h i
90 Comm_remote_group comm:h group:h
91 Intercomm_create localcomm:h localleader:i remotecomm:h remoteleader:i tag:i newcomm:h
92 Intercomm_merge comm:h high:i newcomm:h
93 Keyval_create h
94 Keyval_free h
95 Attr_put h i
96 Attr_get h i i
97 Attr_delete h i
98 Topo_test h b
99 Cart_create oldcomm:h ndim:i dims:I periods:I reorder:i newcomm:h
100 Dims_create i i I I
101 Graph_create numedges:i oldcomm:h nodes:i index:I edges:I reorder:i newcomm:h
102 Graphdims_get h i i
103 Graph_get i i h i i I I
104 Cartdim_get h i
105 Cart_get i h i I I Y
106 Cart_rank i h I i
107 Cart_coords i h i i I
108 Graph_neighbors_count h i i
109 Graph_neighbors i h i i I
110 Cart_shift h i i i i
111 Cart_sub ndim:i oldcomm:h remain_dims:I newcomm:h
112 Cart_map h i I I i
113 Graph_map i h i I I i
114 Get_processor_name C i
115 Get_version i i
116 Errhandler_create h
117 Errhandler_set h h
118 Errhandler_get h h
119 Errhandler_free h
120 Error_string i C i
121 Error_class i i
122 Wtime
123 Wtick
124 Init argv:A
125 Finalize
126 Initialized i
127 Abort h i
128 Pcontrol -
129 Close_port C
130 Comm_accept C h i h h
131 Comm_connect C h i h h
132 Comm_disconnect comm:h
133 Comm_get_parent h
134 Comm_join i h
135 Comm_spawn commrank:i root:i h h ?:C ?:K ?:i ?:h ?:I
136 Comm_spawn_multiple i commrank:i root:i h h ?:i ?:K ?:L ?:I ?:H ?:I
137 Lookup_name C h C
138 Open_port h C
139 Publish_name C h C
140 Unpublish_name C h C
141 Accumulate origincount:i origintype:h targetrank:i targetdisp:i targetcount:i targettype:h op:b win:h
142 Get origincount:i origintype:h targetrank:i targetdisp:i targetcount:i targettype:h win:h
143 Put origincount:i origintype:h targetrank:i targetdisp:i targetcount:i targettype:h win:h
144 Win_complete win:h
145 Win_create size:i dispunit:i info:h comm:h win:h
146 Win_fence assertion:b win:h
147 Win_free win:h
148 Win_get_group win:h group:h
149 Win_lock locktype:b winrank:i assertion:b win:h
150 Win_post group:h assertion:b win:h
151 Win_start group:h assertion:b win:h
152 Win_test win:h flag:i
153 Win_unlock winrank:i win:h
154 Win_wait win:h
155 Alltoallw commsize:i sendcounts:I senddispls:I sendtypes:H recvcounts:I recvdispls:I recvtypes:H comm:h
156 Exscan count:i datatype:h op:b comm:h
157 Add_error_class i
158 Add_error_code i i
159 Add_error_string i C
160 Comm_call_errhandler h i
161 Comm_create_keyval h
162 Comm_delete_attr h h
163 Comm_free_keyval h
164 Comm_get_attr h h i
165 Comm_get_name h C i
166 Comm_set_attr h h
167 Comm_set_name h C
168 File_call_errhandler h i
169 Grequest_complete i
170 Grequest_start i
171 Init_thread argv:K provided:b
172 Is_thread_main i
173 Query_thread b
174 Status_set_cancelled S i
175 Status_set_elements S h i
176 Type_create_keyval h
177 Type_delete_attr h h
178 Type_dup oldtype:h newtype:h
179 Type_free_keyval h
180 Type_get_attr h h i
181 Type_get_contents i i i h i i i I I H
182 Type_get_envelope h i i i b
183 Type_get_name h C i
184 Type_set_attr h h
185 Type_set_name h C
186 Type_match_size b i h
187 Win_call_errhandler h i
188 Win_create_keyval h
189 Win_delete_attr h h
190 Win_free_keyval h
191 Win_get_attr h h i
192 Win_get_name h C i
193 Win_set_attr h h
194 Win_set_name h C
195 Alloc_mem i h
196 Comm_create_errhandler h
197 Comm_get_errhandler h h
198 Comm_set_errhandler h h
199 File_create_errhandler h
200 File_get_errhandler h h
201 File_set_errhandler h h
202 Finalized i
203 Free_mem
204 Get_address i
205 Info_create h
206 Info_delete h C
207 Info_dup h h
208 Info_free h
209 Info_get h C i C i
210 Info_get_nkeys h i
211 Info_get_nthkey h i C
212 Info_get_valuelen h C i i
213 Info_set h C C
214 Pack_external C i h i i i
215 Pack_external_size C i h i
216 Request_get_status i i S
217 Type_create_darray size:i rank:i ndims:i gsizes:I distribs:B dargs:I psizes:I order:b oldtype:h newtype:h
218 Type_create_hindexed count:i blocklengths:I displacements:I oldtype:h newtype:h
219 Type_create_hvector count:i blocklength:i stride:i oldtype:h newtype:h
220 Type_create_indexed_block count:i blocklength:i displacments:I oldtype:h newtype:h
221 Type_create_resized oldtype:h lb:i extent:i newtype:h
222 Type_create_struct count:i blocklengths:I displacements:I oldtypes:H newtype:h
223 Type_create_subarray ndims:i sizes:I subsizes:I starts:I order:b oldtype:h newtype:h
224 Type_get_extent h i i
225 Type_get_true_extent h i i
226 Unpack_external C i i i i h
227 Win_create_errhandler h
228 Win_get_errhandler h h
229 Win_set_errhandler h h
230 File_open h C b h h
231 File_close h
232 File_delete C h
233 File_set_size h q
234 File_preallocate h q
235 File_get_size h q
236 File_get_group h h
237 File_get_amode h b
238 File_set_info h h
239 File_get_info h h
240 File_set_view h q h h C h
241 File_get_view h q h h C
242 File_read_at h q i h S
243 File_read_at_all h q i h S
244 File_write_at h q i h S
245 File_write_at_all h q i h S
246 File_iread_at h q i h i
247 File_iwrite_at h q i h i
248 File_read h i h S
249 File_read_all h i h S
250 File_write h i h S
251 File_write_all h i h S
252 File_iread h i h i
253 File_iwrite h i h i
254 File_seek h q b
255 File_get_position h q
256 File_get_byte_offset h q q
257 File_read_shared h i h S
258 File_write_shared h i h S
259 File_iread_shared h i h i
260 File_iwrite_shared h i h i
261 File_read_ordered h i h S
262 File_write_ordered h i h S
263 File_seek_shared h q b
264 File_get_position_shared h q
265 File_read_at_all_begin h q i h
266 File_read_at_all_end h S
267 File_write_at_all_begin h q i h
268 File_write_at_all_end h S
269 File_read_all_begin h i h
270 File_read_all_end h S
271 File_write_all_begin h i h
272 File_write_all_end h S
273 File_read_ordered_begin h i h
274 File_read_ordered_end h S
275 File_write_ordered_begin h i h
276 File_write_ordered_end h S
277 File_get_type_extent h h i
278 Register_datarep C
279 File_set_atomicity h i
280 File_get_atomicity h i
281 File_sync h
282 IO_Test i i S
283 IO_Wait i S
284 IO_Testall i I i S
285 IO_Waitall i I S
286 IO_Testany i I i i S
287 IO_Waitany i I i S
288 IO_Waitsome i I i I S
289 IO_Testsome i I i I S
290 ALL_FUNCTIONS -
291 Function_enter q
292 Function_exit q
293 END_OF_STREAM -
"""


def layouts() -> dict[int, tuple[str, list[tuple[str, str]] | None]]:
    """Call number -> name, [(argument or "", type)]; None in place of the list for call numbers that never occur."""
    rows: dict[int, tuple[str, list[tuple[str, str]] | None]] = {}
    for line in LAYOUT.split("\n"):
        words = line.split()
        if not words:
            continue
        fields: list[tuple[str, str]] = []
        for word in words[2:]:
            name, _, kind = word.rpartition(":")
            fields.append((name, kind))
        rows[int(words[0])] = (words[1], None if words[2:] == ["-"] else fields)
    return rows
