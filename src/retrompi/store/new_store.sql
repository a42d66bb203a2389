CREATE TABLE retrompi_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT retrompi_version_pkc PRIMARY KEY (version_num)
);
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
	facts JSON NOT NULL, network VARCHAR(32) DEFAULT 'native' NOT NULL, question JSON, 
	CONSTRAINT pk_runs PRIMARY KEY (id)
);
CREATE INDEX ix_runs_identity ON runs (identity);
CREATE INDEX ix_runs_kind ON runs (kind);
CREATE INDEX ix_runs_model ON runs (model);
CREATE INDEX ix_runs_platform ON runs (platform);
CREATE INDEX ix_runs_outcome ON runs (outcome);
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
CREATE INDEX ix_points_run_id ON points (run_id);
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
CREATE INDEX ix_rank_times_run_id ON rank_times (run_id);
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
CREATE INDEX ix_anatomy_run_id ON anatomy (run_id);
CREATE TABLE verdict_batches (
	id INTEGER NOT NULL, 
	created DATETIME NOT NULL, 
	paper VARCHAR(80) NOT NULL, 
	code_version VARCHAR(80) NOT NULL, 
	run_ids JSON NOT NULL, 
	CONSTRAINT pk_verdict_batches PRIMARY KEY (id)
);
CREATE INDEX ix_verdict_batches_paper ON verdict_batches (paper);
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
CREATE INDEX ix_verdicts_batch_id ON verdicts (batch_id);
CREATE INDEX ix_verdicts_claim ON verdicts (claim);
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name VARCHAR(80) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	definition JSON NOT NULL, 
	created DATETIME NOT NULL, 
	code_version VARCHAR(80) NOT NULL, 
	CONSTRAINT pk_studies PRIMARY KEY (id)
);
CREATE INDEX ix_studies_name ON studies (name);
CREATE UNIQUE INDEX ix_studies_hash ON studies (hash);
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
CREATE INDEX ix_study_points_run_id ON study_points (run_id);
CREATE UNIQUE INDEX ix_study_points_study_id_position ON study_points (study_id, position);
CREATE UNIQUE INDEX ux_runs_identity ON runs (identity) WHERE kind NOT IN ('native', 'smpi');
CREATE TABLE run_tags (
	run_id INTEGER NOT NULL, 
	tag VARCHAR(80) NOT NULL, 
	CONSTRAINT pk_run_tags PRIMARY KEY (run_id, tag), 
	CONSTRAINT fk_run_tags_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE INDEX ix_run_tags_tag ON run_tags (tag);
CREATE TABLE study_shards (
	study_id INTEGER NOT NULL, 
	shards INTEGER NOT NULL, 
	shard INTEGER NOT NULL, 
	CONSTRAINT pk_study_shards PRIMARY KEY (study_id, shards, shard), 
	CONSTRAINT fk_study_shards_study_id_studies FOREIGN KEY(study_id) REFERENCES studies (id) ON DELETE CASCADE
);
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
INSERT INTO retrompi_version VALUES ('0007')
