BEGIN TRANSACTION;
CREATE TABLE anatomy (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	"size_B" BIGINT, 
	position INTEGER NOT NULL, 
	stage VARCHAR(80) NOT NULL, 
	process VARCHAR(80) NOT NULL, 
	seconds DOUBLE NOT NULL, 
	ps BIGINT, 
	CONSTRAINT pk_anatomy PRIMARY KEY (id), 
	CONSTRAINT fk_anatomy_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "anatomy" VALUES(1,4,1024,0,'event','rank 0',1.5e-05,15000000);
INSERT INTO "anatomy" VALUES(2,4,1024,1,'switch','rank 1',7.5e-06,7500000);
INSERT INTO "anatomy" VALUES(3,4,1024,2,'library','rank 1',6.41955999999999923173e-05,64195600);
INSERT INTO "anatomy" VALUES(4,4,1024,3,'copy','rank 1',3.413333e-06,3413333);
INSERT INTO "anatomy" VALUES(5,4,1024,4,'event','rank 1',1.5e-05,15000000);
INSERT INTO "anatomy" VALUES(6,4,1024,5,'switch','rank 0',7.5e-06,7500000);
INSERT INTO "anatomy" VALUES(7,4,1024,6,'copy','rank 0',3.413333e-06,3413333);
INSERT INTO "anatomy" VALUES(8,4,1024,7,'library','rank 0',6.41955999999999923173e-05,64195600);
CREATE TABLE points (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	"size_B" BIGINT NOT NULL, 
	time_us DOUBLE NOT NULL, 
	"bandwidth_MBps" DOUBLE NOT NULL, 
	repetitions INTEGER NOT NULL, 
	CONSTRAINT pk_points PRIMARY KEY (id), 
	CONSTRAINT fk_points_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "points" VALUES(1,1,0,173.3912,0.0,3);
INSERT INTO "points" VALUES(2,1,1024,180.217866,5.68201157148315161293e+00,3);
INSERT INTO "points" VALUES(3,2,8,173.444534,4.61242554925368822282e-02,2);
INSERT INTO "points" VALUES(4,3,8,528.177647,1.51464190986484500273e-02,100);
INSERT INTO "points" VALUES(5,12,8,173.444534,4.61242554925368822282e-02,2);
INSERT INTO "points" VALUES(6,13,0,173.3912,0.0,2);
INSERT INTO "points" VALUES(7,13,1024,180.217866,5.68201157148315161293e+00,2);
INSERT INTO "points" VALUES(8,14,1024,5256.1893406,1.94817943883868777144e-01,10);
INSERT INTO "points" VALUES(9,14,262144,4.30882278601099969828e+05,6.08388910426010731669e-01,10);
CREATE TABLE rank_times (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	rank INTEGER NOT NULL, 
	host VARCHAR(80) NOT NULL, 
	time_s DOUBLE NOT NULL, 
	mpi_s DOUBLE NOT NULL, 
	compute_s DOUBLE NOT NULL, 
	cpu_s DOUBLE, 
	sent BIGINT NOT NULL, 
	received BIGINT NOT NULL, 
	bytes_sent BIGINT NOT NULL, 
	bytes_received BIGINT NOT NULL, 
	CONSTRAINT pk_rank_times PRIMARY KEY (id), 
	CONSTRAINT fk_rank_times_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rank_times" VALUES(1,1,0,'server',0.002136654396,0.002121654396,0.0,0.001075827198,6,6,3072,3072);
INSERT INTO "rank_times" VALUES(2,1,1,'server',0.002054045463,0.001929849863,0.0,0.001060827198,6,6,3072,3072);
INSERT INTO "rank_times" VALUES(3,2,0,'server',0.001055667204,0.001040667204,0.0,0.000535333602,3,3,24,24);
INSERT INTO "rank_times" VALUES(4,2,1,'server',0.000976444937,0.00085222267,0.0,0.000520333602,3,3,24,24);
INSERT INTO "rank_times" VALUES(5,3,0,'server',1.15763239987999991265e-01,0.115748239988,0.0,0.015186279932,102,102,816,816);
INSERT INTO "rank_times" VALUES(6,3,1,'workstation',0.115325507519,0.115295507519,0.0,0.015930816312,102,102,816,816);
INSERT INTO "rank_times" VALUES(7,6,0,'n1',0.53,5.29969999999999941131e-01,0.0,0.020173542267,1,0,64,0);
INSERT INTO "rank_times" VALUES(8,6,1,'n2',0.53,0.0,0.0,1.5e-05,0,0,0,0);
INSERT INTO "rank_times" VALUES(11,7,0,'n1',0.099897256945,0.099867256945,0.0,0.020679169068,2,2,128,128);
INSERT INTO "rank_times" VALUES(12,7,1,'n2',9.32272160449999914844e-02,0.093197216045,0.0,0.000679169068,2,2,128,128);
INSERT INTO "rank_times" VALUES(15,8,0,'n1',0.097026454944,0.096996454944,0.0,0.020679169068,2,2,128,128);
INSERT INTO "rank_times" VALUES(16,8,1,'n2',0.090828201607,0.090798201607,0.0,0.000679169068,2,2,128,128);
INSERT INTO "rank_times" VALUES(19,9,0,'n1',0.070963076244,0.063428032258,0.007505043986,0.028567182122,4,4,256,256);
INSERT INTO "rank_times" VALUES(20,9,1,'n2',0.067594817784,6.03109737979999963042e-02,0.007253843986,2.85821821219999980256e-02,4,4,256,256);
INSERT INTO "rank_times" VALUES(23,10,0,'n1',1.9496386080199998303e-01,0.028267194136,0.166666666666,0.187980004802,4,4,256,256);
INSERT INTO "rank_times" VALUES(24,10,1,'n2',1.9496386080199998303e-01,0.028267194136,0.166666666666,0.187980004802,4,4,256,256);
INSERT INTO "rank_times" VALUES(27,12,0,'server',0.000693778136,0.000693778136,0.0,0.000316889068,2,2,16,16);
INSERT INTO "rank_times" VALUES(28,12,1,'server',0.000614555869,0.000520333602,0.0,0.000316889068,2,2,16,16);
INSERT INTO "rank_times" VALUES(29,13,0,'server',1.42943626399999988707e-03,0.001414436264,0.0,0.000722218132,4,4,2048,2048);
INSERT INTO "rank_times" VALUES(30,13,1,'server',0.001346827331,0.001222631731,0.0,0.000707218132,4,4,2048,2048);
INSERT INTO "rank_times" VALUES(31,14,0,'n1',8.722799358834,8.722769358834,0.0,0.11757186485,20,20,2631680,2631680);
INSERT INTO "rank_times" VALUES(32,14,1,'n2',8.32132275356,8.32129275356,0.0,0.09757186485,20,20,2631680,2631680);
CREATE TABLE retrompi_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT retrompi_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "retrompi_version" VALUES('0006');
CREATE TABLE run_tags (
	run_id INTEGER NOT NULL, 
	tag VARCHAR(80) NOT NULL, 
	CONSTRAINT pk_run_tags PRIMARY KEY (run_id, tag), 
	CONSTRAINT fk_run_tags_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_tags" VALUES(1,'curve');
INSERT INTO "run_tags" VALUES(2,'overrides');
INSERT INTO "run_tags" VALUES(3,'benchmark');
INSERT INTO "run_tags" VALUES(4,'message');
INSERT INTO "run_tags" VALUES(5,'starts');
INSERT INTO "run_tags" VALUES(6,'killed');
INSERT INTO "run_tags" VALUES(7,'beside');
INSERT INTO "run_tags" VALUES(8,'free');
INSERT INTO "run_tags" VALUES(9,'kernel');
INSERT INTO "run_tags" VALUES(10,'section');
INSERT INTO "run_tags" VALUES(12,'coarse');
INSERT INTO "run_tags" VALUES(13,'scenario');
INSERT INTO "run_tags" VALUES(14,'sharing');
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	identity VARCHAR(64) NOT NULL, 
	created DATETIME NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	model VARCHAR(80) NOT NULL, 
	model_hash VARCHAR(64) NOT NULL, 
	platform VARCHAR(80) NOT NULL, 
	platform_hash VARCHAR(64) NOT NULL, 
	mode TEXT NOT NULL, 
	parameters JSON NOT NULL, 
	overrides JSON NOT NULL, 
	seed BIGINT NOT NULL, 
	fidelity VARCHAR(16) NOT NULL, 
	trace TEXT NOT NULL, 
	trace_hash VARCHAR(64) NOT NULL, 
	scenario VARCHAR(80) NOT NULL, 
	scenario_hash VARCHAR(64) NOT NULL, 
	code_version VARCHAR(80) NOT NULL, 
	simgrid_version VARCHAR(32) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	wall_s DOUBLE NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	detail TEXT NOT NULL, 
	time_s DOUBLE, 
	ranks INTEGER, 
	actions BIGINT, 
	messages BIGINT, 
	bytes BIGINT, 
	packets BIGINT, 
	facts JSON NOT NULL, network VARCHAR(32) DEFAULT 'native' NOT NULL, 
	CONSTRAINT pk_runs PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES(1,'c0f1dad4a750ef1291e3d0594bfb99965a132bccd97a1f983dafaf1bbc40ed4e','2026-11-27 00:55:17.245660','pingpong','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-pair','816cf451e412ece3981d5cea50b44c53a7a7f10bb3c65a5d0aa45b2abe83daf0','shared','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',1,'mechanism','pingpong','23dbd2c11e26ad7a64bdbd071157b9cf5e659bf86613828262f7daf6e8efd77d','','','0.7.0+0d5b2d4d','','elsewhere',2.59853727000063372543e-01,'completed','',0.002136654396,2,28,12,6144,12,'{"time_ps": 2136654396, "anatomy_ps": 0, "delivered": 12, "delivered_bytes": 6144, "own_bytes": 6144, "done": {"init": 2, "finalize": 2, "send": 12, "recv": 12, "mark": 3}, "frames": 0, "contended": 0, "retransmissions": 0, "duplicates": 0, "events": 13, "events_left_out": 0, "lost": 0}','native');
INSERT INTO "runs" VALUES(2,'31f3aa98f071499d652c2735463ea32ebf54ebedcba0efb1043d10830d9f1f6c','2026-11-27 00:55:17.339635','pingpong','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-pair','c8a71f1390bd9a451e5f46d076d8da9d5f744b7bbae837222d364ac68cbb834b','shared','{"packet": 65536.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{"wmpi.packet": "64KiB", "platform.server.quantum": "60ms", "platform.workstation.quantum": "20ms"}',7,'mechanism','pingpong','db7f0ec7a22c99ec4bf1fc2d4aa1f2f35feaa31ba54b4e6f1a5a36152a737b1d','','','0.7.0+0d5b2d4d','','elsewhere',1.17349960000865394249e-02,'completed','',0.001055667204,2,16,6,48,6,'{"time_ps": 1055667204, "anatomy_ps": 0, "delivered": 6, "delivered_bytes": 48, "own_bytes": 48, "done": {"init": 2, "finalize": 2, "send": 6, "recv": 6, "mark": 3}, "frames": 0, "contended": 0, "retransmissions": 0, "duplicates": 0, "events": 7, "events_left_out": 0, "lost": 0}','native');
INSERT INTO "runs" VALUES(3,'dadefb0209236fdf41ce0914ea95d4cff14d836a122ee0d7729abc4fdeda5f65','2026-11-27 00:55:17.435285','benchmark','sockets','ab24299c7d567e37fc48b3cb80fcaef661ca91246f24f7efa6c9598b3a5ebae9','nt-pair','816cf451e412ece3981d5cea50b44c53a7a7f10bb3c65a5d0aa45b2abe83daf0','distributed','{"header": 8.0, "call": 5e-06, "connect": 0.001, "receive": "block", "poll_cost": 5e-06}','{}',1,'mechanism','osu_latency','dd6763fe2b28d43e2711fdafe220936ffde7412e2fd59ea2efbef97fadfacb93','','','0.7.0+0d5b2d4d','','elsewhere',1.75321419999363570241e-02,'completed','',1.15763239987999991265e-01,2,412,204,1632,204,'{"time_ps": 115763239988, "anatomy_ps": 0, "delivered": 204, "delivered_bytes": 1632, "own_bytes": 1632, "done": {"init": 2, "finalize": 2, "send": 204, "recv": 204, "mark": 3}, "frames": 204, "contended": 0, "retransmissions": 0, "duplicates": 0, "events": 51, "events_left_out": 768, "lost": 0}','native');
INSERT INTO "runs" VALUES(4,'2a008d6324e0cca5ec25c4aa557061607f109b0138edb55c281bd54c7434e1bc','2026-11-27 00:55:17.512333','explain','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-pair','816cf451e412ece3981d5cea50b44c53a7a7f10bb3c65a5d0aa45b2abe83daf0','shared','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',1,'mechanism','one message','9bcd5be1ac3aad8ac673f19f73788785cc8b3fb4da64edaf0d1f509288850191','','','0.7.0+0d5b2d4d','','elsewhere',2.19400559999485267326e-02,'completed','',0.000180217866,2,NULL,NULL,NULL,NULL,'{}','native');
INSERT INTO "runs" VALUES(5,'51b7b70851eb54719bfaa5fd966d560d48b93c2c7314f3ee33b5bc893ce67b2a','2026-11-27 00:55:17.569516','startup','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-pair','816cf451e412ece3981d5cea50b44c53a7a7f10bb3c65a5d0aa45b2abe83daf0','shared','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',1,'mechanism','start-up','8dad5834f44329f0420aafff1ed8d94da25e9e50effee1dd15a23f939f064c57','','','0.7.0+0d5b2d4d','','elsewhere',7.06493000052432762458e-04,'completed','',NULL,2,NULL,NULL,NULL,NULL,'{"startup": {"attempts": 3, "failures": 0, "failure_rate": 0.0, "windows": 1, "daemons": 1, "manual_steps_per_job": 2, "seconds": 0.0, "steps": [{"step": "process group file", "manual": 1, "windows": 0, "daemons": 0, "seconds": 0.0, "note": "lists machines, programs and directories"}, {"step": "daemon on server", "manual": 0, "windows": 0, "daemons": 1, "seconds": 0.0, "note": "runs since the machine was booted"}, {"step": "rank 0", "manual": 1, "windows": 1, "daemons": 0, "seconds": 0.0, "note": "started by hand; asks the daemons for the others"}, {"step": "rank 1", "manual": 0, "windows": 0, "daemons": 0, "seconds": 0.0, "note": "on server"}], "hosts": 1, "ranks": 2}}','native');
INSERT INTO "runs" VALUES(6,'74379a975e0dba0c266764b01ce0d3e188d017e6c6c5680ecd9d44066a71a50e','2026-11-27 00:55:17.661017','replay','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-cluster','4c02eef39befed9856db67228ea2a3112620a7c3a0ee700ed9a89c76224185a6','distributed','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',1,'mechanism','ring','1cb13d76df6d5fcebdbfe986ca418c906dd020e1c56381144588c60b1144608d','','','0.7.0+0d5b2d4d','','elsewhere',1.66887620000579772749e-02,'deadlock','no process can go on: rank 0 (ring/rank-0.txt:4 recv from 3 tag 0) -> rank 3 (ring/rank-3.txt:2 recv from 2 tag 0) -> rank 2 (ring/rank-2.txt:2 recv from 1 tag 0) -> rank 1, which was killed; killed: rank 1 at 0.0001 s; the runtime said nothing to the job''s owner',0.53,4,24,1,64,3,'{"time_ps": 530000000000, "marks": [{"rank": 0, "label": "size 64 reps 2", "time_s": 3e-05, "time_ps": 30000000}], "anatomy_ps": 0, "waits": [{"rank": 0, "line": 4, "file": "ring/rank-0.txt", "action": "recv", "on": "a message from rank 3, tag 0"}, {"rank": 2, "line": 2, "file": "ring/rank-2.txt", "action": "recv", "on": "a message from rank 1, tag 0"}, {"rank": 3, "line": 2, "file": "ring/rank-3.txt", "action": "recv", "on": "a message from rank 2, tag 0"}], "delivered": 0, "delivered_bytes": 0, "own_bytes": 64, "done": {"init": 4, "send": 1, "mark": 1}, "frames": 2, "contended": 0, "retransmissions": 0, "duplicates": 0, "events": 32, "events_left_out": 0, "lost": 0}','native');
INSERT INTO "runs" VALUES(7,'7ee726b3147de894bb5ae032524f4a33d5570163d8ee2bd578c037f4a45b1881','2026-11-27 00:55:17.753877','replay','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-cluster','4c02eef39befed9856db67228ea2a3112620a7c3a0ee700ed9a89c76224185a6','distributed','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',1,'mechanism','ring','6a936e8f99e032ff5c263fbf6deb69b87703cbd9fb19ea3554f7bfba5c6c09c7','','','0.7.0+0d5b2d4d','','elsewhere',2.97987830001602560514e-02,'completed','',0.099897256945,4,24,8,512,24,'{"time_ps": 99897256945, "marks": [{"rank": 0, "label": "size 64 reps 2", "time_s": 3e-05, "time_ps": 30000000}, {"rank": 0, "label": "end", "time_s": 0.099897256945, "time_ps": 99897256945}], "anatomy_ps": 0, "delivered": 8, "delivered_bytes": 512, "own_bytes": 512, "done": {"init": 4, "finalize": 4, "send": 8, "recv": 8, "mark": 2}, "frames": 16, "contended": 5, "retransmissions": 0, "duplicates": 0, "events": 1713, "events_left_out": 0, "lost": 0, "traffic": [{"traffic": "any 1Mbps 100B", "frames": 125, "arrived": 125, "bytes": 12500, "dropped": 0, "lost": 0}], "jobs": [{"name": "other", "model": "wmpi", "mode": "2,2", "trace": "ring", "start_s": 0.001, "background": true, "ranks": 2, "outcome": "ended", "detail": "with the first job", "time_s": 0.09859013639599999, "time_ps": 98590136396, "runs": 102, "waits": [], "messages": 410, "bytes": 26240, "delivered": 409, "delivered_bytes": 26176, "own_bytes": 26240, "packets": 410, "frames": 0, "retransmissions": 0, "duplicates": 0, "lost": 0}]}','native');
INSERT INTO "runs" VALUES(8,'8639ad802ff7b7d4f82258a980093d1cce55e35886d5ca026bdf68b067c237f9','2026-11-27 00:55:17.827353','replay','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-cluster','4c02eef39befed9856db67228ea2a3112620a7c3a0ee700ed9a89c76224185a6','distributed','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',1,'mechanism','ring','afbc31a6701b56e7c5ebd170cb006247b0d638dffe67ad2a67cc4a2c0254bccc','','','0.7.0+0d5b2d4d','','elsewhere',1.07069700000010925577e-02,'completed','',0.097026454944,4,24,8,512,24,'{"time_ps": 97026454944, "marks": [{"rank": 0, "label": "size 64 reps 2", "time_s": 3e-05, "time_ps": 30000000}, {"rank": 0, "label": "end", "time_s": 0.097026454944, "time_ps": 97026454944}], "anatomy_ps": 0, "startup": [{"step": "process group file", "manual": 1, "windows": 0, "daemons": 0, "seconds": 0.0, "note": "lists machines, programs and directories"}, {"step": "daemon on n1", "manual": 0, "windows": 0, "daemons": 1, "seconds": 0.0, "note": "runs since the machine was booted"}, {"step": "daemon on n2", "manual": 0, "windows": 0, "daemons": 1, "seconds": 0.0, "note": "runs since the machine was booted"}, {"step": "daemon on n3", "manual": 0, "windows": 0, "daemons": 1, "seconds": 0.0, "note": "runs since the machine was booted"}, {"step": "daemon on n4", "manual": 0, "windows": 0, "daemons": 1, "seconds": 0.0, "note": "runs since the machine was booted"}, {"step": "rank 0", "manual": 1, "windows": 1, "daemons": 0, "seconds": 0.0, "note": "started by hand; asks the daemons for the others"}, {"step": "rank 1", "manual": 0, "windows": 0, "daemons": 0, "seconds": 0.0, "note": "on n2"}, {"step": "rank 2", "manual": 0, "windows": 0, "daemons": 0, "seconds": 0.0, "note": "on n3"}, {"step": "rank 3", "manual": 0, "windows": 0, "daemons": 0, "seconds": 0.0, "note": "on n4"}], "delivered": 8, "delivered_bytes": 512, "own_bytes": 512, "done": {"init": 4, "finalize": 4, "send": 8, "recv": 8, "mark": 2}, "frames": 16, "contended": 0, "retransmissions": 0, "duplicates": 0, "events": 118, "events_left_out": 0, "lost": 0}','native');
INSERT INTO "runs" VALUES(9,'7589793d42391a07220e39ed5763afafed696ca93fa2b407b97acb7bbec51a78','2026-11-27 00:55:17.947922','replay','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-cluster','eea35c2cf64c816f0db5824578bb63de49ae2b2317b3f5abe7821ad66e85b7d0','0,1,2,0','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{"platform.n1.flops": "27571588.3 flop/s", "platform.n2.flops": "27571588.3 flop/s", "platform.n3.flops": "27571588.3 flop/s", "platform.n4.flops": "27571588.3 flop/s", "platform.n5.flops": "27571588.3 flop/s", "platform.n6.flops": "27571588.3 flop/s"}',1,'mechanism','halo','c8dd72cf70281aca8cf3059bf57ee5227f099aedcb4c633f489b26d79e23c9da','','','0.7.0+0d5b2d4d','','elsewhere',1.29658209998524398542e-02,'completed','',0.070963076244,4,56,16,1024,48,'{"time_ps": 70963076244, "marks": [{"rank": 0, "label": "size 64 reps 2", "time_s": 3e-05, "time_ps": 30000000}, {"rank": 0, "label": "end", "time_s": 0.070963076244, "time_ps": 70963076244}], "anatomy_ps": 0, "delivered": 16, "delivered_bytes": 1024, "own_bytes": 1024, "done": {"init": 4, "finalize": 4, "compute": 8, "isend": 16, "irecv": 16, "waitall": 8, "mark": 2}, "frames": 32, "contended": 2, "retransmissions": 0, "duplicates": 0, "events": 358, "events_left_out": 0, "lost": 0}','fluid');
INSERT INTO "runs" VALUES(10,'9ef8a1e7cc15fe008df8b16459cbf6a3f5fd5019549fa7118a5eeb95e2818b08','2026-11-27 00:55:18.021894','replay','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-cluster','4c02eef39befed9856db67228ea2a3112620a7c3a0ee700ed9a89c76224185a6','distributed','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',1,'mechanism','halo','48d972f5e35ad96d79f6219f70f43f8cbd8c6198e1cfe63de5c632cf72ad7199','','','0.7.0+0d5b2d4d','','elsewhere',1.78656660000342526473e-02,'completed','',1.9496386080199998303e-01,4,56,16,1024,48,'{"time_ps": 194963860802, "marks": [{"rank": 0, "label": "timed section", "time_s": 3e-05, "time_ps": 30000000}, {"rank": 0, "label": "size 64 reps 2", "time_s": 3e-05, "time_ps": 30000000}, {"rank": 0, "label": "end", "time_s": 3e-05, "time_ps": 30000000}, {"rank": 0, "label": "end", "time_s": 0.19496386080199998, "time_ps": 194963860802}], "anatomy_ps": 0, "delivered": 16, "delivered_bytes": 1024, "own_bytes": 1024, "done": {"init": 4, "finalize": 4, "compute": 8, "isend": 16, "irecv": 16, "waitall": 8, "mark": 4}, "frames": 32, "contended": 26, "retransmissions": 0, "duplicates": 0, "events": 504, "events_left_out": 0, "section": {"section": "2-3", "begin_s": 3e-05, "end_s": 3e-05, "seconds": 0.0}, "lost": 0}','native');
INSERT INTO "runs" VALUES(11,'7cb31ec237249dde65ee2f2b4e6dd41eeaa6b135c04a8d1ee0289f303f0ae8ef','2026-11-27 00:55:18.222312','sample','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-pair','816cf451e412ece3981d5cea50b44c53a7a7f10bb3c65a5d0aa45b2abe83daf0','0,0','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',1,'mechanism','sample of a pair','87e46ca810e9ac07e07987b3350cff97941963dc9e5a4549ed146f8195c9b1bf','','','0.7.0+0d5b2d4d','','elsewhere',1.41594327999882807489e-01,'completed','',NULL,2,NULL,NULL,NULL,NULL,'{"sample": {}}','native');
INSERT INTO "runs" VALUES(12,'59b511ab33e83f9be92595e42a1e8f750333c1277c416f77607531f7191d98dd','2026-11-27 00:55:18.331412','pingpong','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-pair','816cf451e412ece3981d5cea50b44c53a7a7f10bb3c65a5d0aa45b2abe83daf0','shared','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',1,'curve','pingpong','c0521f8f4f4d671f3fdf24cd4a4a64200a14265677c3036ace15fa10e8d6c13b','','','0.7.0+0d5b2d4d','','elsewhere',4.23966849998578254599e-02,'completed','',0.000693778136,2,12,4,32,4,'{"time_ps": 693778136, "anatomy_ps": 0, "cautions": [{"code": "not-sampled", "text": "a stream not sampled: aborted: the shared memory pool of 1048576 B on host server is exhausted"}, {"code": "not-sampled", "text": "streams both ways not sampled: aborted: the shared memory pool of 1048576 B on host server is exhausted"}], "delivered": 4, "delivered_bytes": 32, "own_bytes": 32, "done": {"init": 2, "finalize": 2, "send": 4, "recv": 4, "mark": 2}, "frames": 0, "contended": 0, "retransmissions": 0, "duplicates": 0, "events": 10, "events_left_out": 0, "lost": 0}','native');
INSERT INTO "runs" VALUES(13,'04c2c36d3683a389da77ebd41c9b226b5a4a554e035bca82c81d455974c39cb5','2026-11-27 00:55:18.511253','pingpong','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-pair','816cf451e412ece3981d5cea50b44c53a7a7f10bb3c65a5d0aa45b2abe83daf0','shared','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',5,'mechanism','pingpong','f5992037da455e7763c1c58aa692da06698a32be00019fcd772e9fe004622811','bf-wmpi-shared','000818f84bc13e76d647db812166292f2215a11711e37f800a21eca5d0d5ea6a','0.7.0+0d5b2d4d','','elsewhere',0.0382097540000359,'completed','',1.42943626399999988707e-03,2,20,8,4096,8,'{"time_ps": 1429436264, "anatomy_ps": 0, "delivered": 8, "delivered_bytes": 4096, "own_bytes": 4096, "done": {"init": 2, "finalize": 2, "send": 8, "recv": 8, "mark": 3}, "frames": 0, "contended": 0, "retransmissions": 0, "duplicates": 0, "events": 9, "events_left_out": 0, "lost": 0}','native');
INSERT INTO "runs" VALUES(14,'58d6a3abb77ddefb7df961f41d1e39ba571ca9fd57ff3ab0479e051292cc3c68','2026-11-27 00:55:18.732797','pingpong','wmpi','9dad5c81026fa106a91c459e243024b75505ee512b1a2a793a6d9eed1af7dcf1','nt-cluster','4c02eef39befed9856db67228ea2a3112620a7c3a0ee700ed9a89c76224185a6','0,1','{"packet": 131072.0, "header": 40.0, "pool": 1048576.0, "prefix": 32.0, "copies": 2.0, "library": 6.419559999999999e-05, "event": 3e-05, "largest_class": 1048576.0, "answer_wait": "spin", "receive_wait": "block", "polls": 50.0, "exhausted": "abort", "pool_wait": "block", "poll_cost": 2e-06, "socket_call": 9e-05, "socket_buffer": 16384.0, "connect": 0.02, "daemon": 0.00042079700000000004, "network_packet": 61440.0, "udp_window": 4.0, "udp_timeout": 0.5, "udp_retries": 10.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.02, "xdr_buffer": 4096.0, "xdr_call": 2e-05, "xdr_byte": 6e-08, "unexpected": 0.0}','{}',3,'mechanism','pingpong','2d696d8605edab326805b102986f6339fcd5ad81bf068ea45a1bbdfad3da564d','two-jobs-on-a-hub','ca56e12a7c7e941a8ffb2d0f0b25d4facbc2ddccc12a3fe195a4ac50389c20e7','0.7.0+0d5b2d4d','','elsewhere',8.47905730001912161242e-02,'completed','',8.722799358834,2,84,40,5263360,360,'{"time_ps": 8722799358834, "anatomy_ps": 0, "delivered": 40, "delivered_bytes": 5263360, "own_bytes": 5263360, "done": {"init": 2, "finalize": 2, "send": 40, "recv": 40, "mark": 3}, "frames": 3740, "contended": 7353, "retransmissions": 0, "duplicates": 0, "events": 54693, "events_left_out": 0, "lost": 0, "jobs": [{"name": "neighbour", "model": "wmpi", "mode": "n3,n4", "trace": "pingpong", "start_s": 0.0, "background": true, "ranks": 2, "outcome": "ended", "detail": "with the first job", "time_s": 8.039900158834, "time_ps": 8039900158834, "runs": 3, "waits": [], "messages": 44, "bytes": 5267456, "delivered": 43, "delivered_bytes": 5005312, "own_bytes": 5267456, "packets": 368, "frames": 3744, "retransmissions": 0, "duplicates": 0, "lost": 0}]}','native');
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name VARCHAR(80) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	definition JSON NOT NULL, 
	created DATETIME NOT NULL, 
	code_version VARCHAR(80) NOT NULL, 
	CONSTRAINT pk_studies PRIMARY KEY (id)
);
CREATE TABLE study_points (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	axes JSON NOT NULL, 
	identity VARCHAR(64) NOT NULL, 
	run_id INTEGER, 
	outcome VARCHAR(16) NOT NULL, 
	reason TEXT NOT NULL, 
	wall_s DOUBLE NOT NULL, 
	CONSTRAINT pk_study_points PRIMARY KEY (id), 
	CONSTRAINT fk_study_points_study_id_studies FOREIGN KEY(study_id) REFERENCES studies (id) ON DELETE CASCADE, 
	CONSTRAINT fk_study_points_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE SET NULL
);
CREATE TABLE study_shards (
	study_id INTEGER NOT NULL, 
	shards INTEGER NOT NULL, 
	shard INTEGER NOT NULL, 
	CONSTRAINT pk_study_shards PRIMARY KEY (study_id, shards, shard), 
	CONSTRAINT fk_study_shards_study_id_studies FOREIGN KEY(study_id) REFERENCES studies (id) ON DELETE CASCADE
);
CREATE TABLE verdict_batches (
	id INTEGER NOT NULL, 
	created DATETIME NOT NULL, 
	paper VARCHAR(80) NOT NULL, 
	code_version VARCHAR(80) NOT NULL, 
	run_ids JSON NOT NULL, 
	CONSTRAINT pk_verdict_batches PRIMARY KEY (id)
);
CREATE TABLE verdicts (
	id INTEGER NOT NULL, 
	batch_id INTEGER NOT NULL, 
	claim VARCHAR(40) NOT NULL, 
	system TEXT NOT NULL, 
	use VARCHAR(16) NOT NULL, 
	verdict VARCHAR(16) NOT NULL, 
	observed JSON, 
	low DOUBLE, 
	high DOUBLE, 
	unit VARCHAR(40) NOT NULL, 
	note TEXT NOT NULL, 
	latest BOOLEAN NOT NULL, 
	CONSTRAINT pk_verdicts PRIMARY KEY (id), 
	CONSTRAINT fk_verdicts_batch_id_verdict_batches FOREIGN KEY(batch_id) REFERENCES verdict_batches (id) ON DELETE CASCADE
);
CREATE INDEX ix_runs_identity ON runs (identity);
CREATE INDEX ix_runs_kind ON runs (kind);
CREATE INDEX ix_runs_model ON runs (model);
CREATE INDEX ix_runs_platform ON runs (platform);
CREATE INDEX ix_runs_outcome ON runs (outcome);
CREATE INDEX ix_points_run_id ON points (run_id);
CREATE INDEX ix_rank_times_run_id ON rank_times (run_id);
CREATE INDEX ix_anatomy_run_id ON anatomy (run_id);
CREATE INDEX ix_verdict_batches_paper ON verdict_batches (paper);
CREATE INDEX ix_verdicts_batch_id ON verdicts (batch_id);
CREATE INDEX ix_verdicts_claim ON verdicts (claim);
CREATE INDEX ix_studies_name ON studies (name);
CREATE UNIQUE INDEX ix_studies_hash ON studies (hash);
CREATE INDEX ix_study_points_run_id ON study_points (run_id);
CREATE UNIQUE INDEX ix_study_points_study_id_position ON study_points (study_id, position);
CREATE UNIQUE INDEX ux_runs_identity ON runs (identity) WHERE kind NOT IN ('native', 'smpi');
CREATE INDEX ix_run_tags_tag ON run_tags (tag);
CREATE VIEW runs_v AS SELECT r.id AS run_id, substr(r.created, 1, 19) AS stored_utc, r.kind, r.model, r.platform, r.mode AS placement, r.scenario, r.trace,
        r.seed, r.fidelity, r.network, r.outcome, r.detail AS reason, r.time_s, r.ranks, r.messages, r.bytes AS "payload_B", r.packets,
        r.actions AS mpi_calls, r.wall_s AS simulating_took_s, (SELECT group_concat(tag, ' ') FROM (SELECT tag FROM run_tags t WHERE t.run_id = r.id ORDER BY tag)) AS tags, r.overrides AS overrides_json,
        r.parameters AS parameters_json, r.identity, r.code_version, r.host AS simulated_on
        FROM runs r;
CREATE VIEW points_v AS SELECT p.run_id, r.model, r.platform, r.mode AS placement, r.seed, r.fidelity, r.network, r.outcome, p."size_B" AS "size_B", CAST(p."size_B" AS REAL) / 1024 AS "size_KiB", p.time_us AS one_way_us,
        p."bandwidth_MBps" AS "bandwidth_MBps", p.repetitions
        FROM points p JOIN runs r ON r.id = p.run_id;
CREATE VIEW ranks_v AS SELECT t.run_id, r.model, r.platform, r.mode AS placement, r.seed, r.fidelity, r.network, r.outcome, t.rank, t.host, t.time_s, t.mpi_s, t.compute_s, t.cpu_s,
        CASE WHEN t.time_s > 0 THEN 100 * t.mpi_s / t.time_s END AS mpi_percent, t.sent AS messages_sent,
        t.received AS messages_received, t.bytes_sent AS "sent_B", t.bytes_received AS "received_B"
        FROM rank_times t JOIN runs r ON r.id = t.run_id;
CREATE VIEW stages_v AS SELECT a.run_id, r.model, r.platform, r.mode AS placement, r.seed, r.fidelity, r.network, r.outcome, a."size_B" AS "size_B", a.position, a.stage, a.process, 1e6 * a.seconds AS time_us
        FROM anatomy a JOIN runs r ON r.id = a.run_id;
CREATE VIEW overrides_v AS SELECT r.id AS run_id, j.key AS parameter, j.value AS value FROM runs r, json_each(r.overrides) j;
CREATE VIEW parameters_v AS SELECT r.id AS run_id, r.model, j.key AS parameter, j.value AS value FROM runs r, json_each(r.parameters) j;
CREATE VIEW studies_v AS SELECT s.id AS study_id, s.name, json_extract(s.definition, '$.title') AS title, json_extract(s.definition, '$.question') AS question, substr(s.created, 1, 19) AS first_run_utc,
        (SELECT count(*) FROM study_points p WHERE p.study_id = s.id) AS points,
        (SELECT count(*) FROM study_points p WHERE p.study_id = s.id AND p.outcome = 'completed') AS completed,
        (SELECT count(*) FROM study_points p WHERE p.study_id = s.id AND p.outcome = 'error') AS errors,
        s.hash, s.code_version
        FROM studies s;
CREATE VIEW study_points_v AS SELECT p.study_id, s.name AS study, p.position, p.outcome, p.reason, p.run_id, r.model, r.platform,
        r.mode AS placement, r.seed, r.fidelity, r.time_s, r.messages, p.wall_s AS simulating_took_s, p.axes AS axes_json
        FROM study_points p JOIN studies s ON s.id = p.study_id LEFT JOIN runs r ON r.id = p.run_id;
CREATE VIEW study_axes_v AS SELECT p.study_id, s.name AS study, p.position, p.run_id, j.key AS axis, j.value AS value
        FROM study_points p JOIN studies s ON s.id = p.study_id, json_each(p.axes) j;
CREATE VIEW verdicts_v AS SELECT v.claim, b.paper, v.system, v.verdict, v.observed AS observed, v.low, v.high, v.unit, v.note,
        substr(b.created, 1, 19) AS judged_utc, b.code_version
        FROM verdicts v JOIN verdict_batches b ON b.id = v.batch_id WHERE v.latest;
COMMIT;
