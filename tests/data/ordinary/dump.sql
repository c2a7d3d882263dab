-- PostgreSQL database dump
CREATE TABLE jobs (
    id integer NOT NULL,
    message text
);
INSERT INTO jobs VALUES (79, 'CUDA out of memory');
INSERT INTO jobs VALUES (80, 'done');
ALTER TABLE ONLY jobs ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);
