-- What every smoke script finds when it starts, one statement a line.
CREATE TABLE people (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL UNIQUE, born DATE, score DOUBLE)
CREATE TABLE blobs (id INT PRIMARY KEY, data LONGBLOB)
CREATE PROCEDURE two_results(IN n INT) BEGIN SELECT n AS a UNION ALL SELECT n + 1; SELECT 'x' AS b; END
CREATE PROCEDURE doubled(IN n INT, OUT m INT) BEGIN SELECT 'working' AS state; SET m = 2 * n; END
