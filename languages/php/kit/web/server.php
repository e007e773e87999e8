<?php

/** Server and pong: nginx and php-fpm in the foreground, which write into the run's folder. */

declare(strict_types=1);

namespace Web;

use ReflectionClass;
use Wattwire\Kit;
use Wattwire\Literal;
use Wattwire\Payload;
use Wattwire\Record;
use Wattwire\Refused;

const NGINX = '/usr/sbin/nginx', PHP_FPM = '/usr/sbin/php-fpm8.2';
const BACKLOG = 511; // nginx's default
const SOCKET_NAME_MAX = 107; // of <linux/un.h>
const STOP_NS = 500_000_000;

/**
 * Runs a server: the scripts in folder $public answer POSTs to $path. READY names their $library
 * ('name', 'version').
 */
function serve(Kit $kit, string $public, string $path, array $library): void
{
    $out = realpath($_SERVER['argv'][4]);
    $socket = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
    $host = $kit->spec->host_address;
    if (!@socket_bind($socket, $host, 0) || !@socket_listen($socket, BACKLOG)) {
        throw new Refused('listen: ' . socket_strerror(socket_last_error($socket)), 4);
    }
    socket_getsockname($socket, $host, $port);
    file_put_contents("$out/message.php", messageScript($kit->message));
    $pool = "$out/php.sock";
    if (strlen($pool) > SOCKET_NAME_MAX) {
        $pool = sys_get_temp_dir() . "/wattwire-{$kit->spec->run}-{$kit->spec->node}.sock";
    }
    file_put_contents("$out/php-fpm.conf", poolConfiguration($kit, $out, $pool));
    file_put_contents(
        "$out/nginx.conf",
        nginxConfiguration($kit, $out, $port, $pool, $public)
    );
    $fpm = start([PHP_FPM, '-F', '-R', '-y', "$out/php-fpm.conf"], $out);
    // nginx takes the listening socket from its environment, so no other process can take the port.
    $nginx = start(
        [NGINX, '-e', 'stderr', '-c', "$out/nginx.conf"],
        $out,
        [4 => socket_export_stream($socket)],
        ['NGINX' => '4;']
    );
    $processes = [$fpm, $nginx];
    register_shutdown_function(stop(...), $processes);
    register_shutdown_function(fn () => @unlink($pool)); // a killed php-fpm does not remove it
    $scheme = $kit->spec->settings['tls'] ? 'https' : 'http';
    $url = "$scheme://$host:$port$path";
    $server = awaitAnswer($kit, $processes, $pool, $url);
    \Wattwire\line('LISTENING', ['endpoints' => [$url]]);
    announceServer($kit, $library, $server);
    $kit->drain(fn (int $until_ns) => attend($kit, $processes, $until_ns));
    stop($processes);
    $kit->leaveUncounted();
}

/** Returns the script from which each request's process takes the messages; opcache caches it. */
function messageScript(Payload|Literal|Record $message): string
{
    $class = var_export((new ReflectionClass($message))->getFileName(), true);
    $serialized = var_export(serialize($message), true);
    return "<?php require $class; return unserialize($serialized);\n";
}

/** Starts a process that ends with this one and does not inherit its descriptors. */
function start(array $command, string $folder, array $passed = [], array $names = []): mixed
{
    $nothing = ['file', '/dev/null', 'r+'];
    $process = proc_open(
        ['setpriv', '--pdeathsig', 'TERM', '--', ...$command],
        [$nothing, STDERR, STDERR, $nothing] + $passed,
        $pipes,
        $folder,
        $names + getenv()
    );
    return $process !== false ? $process : throw new Refused("cannot start $command[0]", 4);
}

function stop(array $processes): void
{
    array_map(proc_terminate(...), array_filter($processes, is_resource(...)));
    $until_ns = hrtime(true) + STOP_NS;
    foreach (array_filter($processes, is_resource(...)) as $process) {
        while (proc_get_status($process)['running'] && hrtime(true) < $until_ns) {
            usleep(1000);
        }
        proc_terminate($process, SIGKILL);
        proc_close($process);
    }
}

/** Waits. Ends the node with 4 if one of the processes has ended. */
function attend(Kit $kit, array $processes, int $until_ns): void
{
    foreach ($processes as $process) {
        $status = proc_get_status($process);
        $status['running']
            || throw new Refused("{$status['command']} has ended, see the log and php-fpm.log", 4);
    }
    $kit->wait($until_ns);
}

/** Sends GET requests until the application answers with 405; returns the server's name. */
function awaitAnswer(Kit $kit, array $processes, string $pool, string $url): string
{
    $bound_ms = $kit->spec->ready_timeout_ms;
    [$answer, $status] = ['', 0];
    while ($status !== 405) {
        if (hrtime(true) > \Wattwire\BEGIN_NS + $bound_ms * 1_000_000) {
            throw new Refused("no answer within ready_timeout_ms = $bound_ms, see the log", 4);
        }
        attend($kit, $processes, hrtime(true) + 5_000_000);
        if (!file_exists($pool)) {
            continue;
        }
        $handle = curl_init($url);
        curl_setopt_array($handle, [CURLOPT_RETURNTRANSFER => true, CURLOPT_HEADER => true,
            CURLOPT_NOPROXY => '*', CURLOPT_TIMEOUT_MS => 1000,
            CURLOPT_SSL_VERIFYPEER => false, CURLOPT_SSL_VERIFYHOST => 0]);
        $answer = curl_exec($handle);
        $status = curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
    }
    preg_match('/^server: (.*?)\r$/mi', $answer, $server);
    return ($server[1] ?? 'nginx') . ', php-fpm ' . PHP_VERSION;
}

function announceServer(Kit $kit, array $library, string $server): void
{
    $spec = $kit->spec;
    ready($kit, null, null, $library + ['build' => $server], [
        'keep_alive' => 'on', 'server' => $server,
        'tcp_nodelay' => $spec->settings['tcp_nodelay'] !== 'off', 'tls' => $spec->settings['tls'],
        'server_workers' => $spec->settings['server_workers'] ?: DEFAULT_WORKERS,
        'transport' => 'tcp/ipv4',
    ]);
}
