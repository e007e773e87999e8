<?php

/** The configuration of nginx and php-fpm: Debian's, except for paths, users and sizes. */

declare(strict_types=1);

namespace Web;

use ReflectionClass;
use Wattwire\Kit;

const DEFAULT_WORKERS = 5; // pm.max_children of Debian's pool

function poolConfiguration(Kit $kit, string $out, string $pool): string
{
    $workers = $kit->spec->settings['server_workers'];
    // Without a number of workers the settings are those of Debian's pool www.
    $manager = $workers > 0 ? "pm = static\npm.max_children = $workers" : 'pm = dynamic
pm.max_children = ' . DEFAULT_WORKERS . '
pm.start_servers = 2
pm.min_spare_servers = 1
pm.max_spare_servers = 3';
    $kit_folder = dirname((new ReflectionClass(Kit::class))->getFileName(), 2);
    $user = posix_getpwuid(posix_geteuid())['name'] ?? 'root';
    $group = posix_getgrgid(posix_getegid())['name'] ?? 'root';
    $identity = posix_geteuid() === 0 ? "user = $user\ngroup = $group" : '';
    return <<<CONFIGURATION
        [global]
        pid = $out/php-fpm.pid
        error_log = $out/php-fpm.log
        log_level = warning
        [www]
        $identity
        listen = $pool
        $manager
        php_admin_value[include_path] = $kit_folder:/usr/share/php
        ; the longest message is 16 MiB, four times as long in JSON; Debian's limits are 8M and 128M
        php_admin_value[post_max_size] = 80M
        php_admin_value[memory_limit] = -1
        ; the folder of long bodies while they are read; a killed worker leaves them there
        php_admin_value[sys_temp_dir] = $out
        php_admin_flag[log_errors] = on
        php_admin_value[error_log] = $out/php-fpm.log
        catch_workers_output = yes

        CONFIGURATION;
}

function nginxConfiguration(
    Kit $kit,
    string $out,
    int $port,
    string $pool,
    string $public
): string {
    $spec = $kit->spec;
    $user = posix_getpwuid(posix_geteuid())['name'] ?? 'root';
    $group = posix_getgrgid(posix_getegid())['name'] ?? 'root';
    $identity = posix_geteuid() === 0 ? "user $user $group;" : '';
    $nodelay = $spec->settings['tcp_nodelay'];
    $nodelay = $nodelay === 'default' ? '' : "tcp_nodelay $nodelay;";
    $keep = $spec->settings['keep_alive'] === 'off' ? 'keepalive_timeout 0;' : '';
    $tls = !$spec->settings['tls'] ? '' : "ssl_certificate {$spec->tls_certificate};
            ssl_certificate_key {$spec->tls_key};";
    $ssl = $tls === '' ? '' : ' ssl';
    return <<<CONFIGURATION
        daemon off;
        $identity
        pid $out/nginx.pid;
        error_log stderr;
        worker_processes auto;
        events { worker_connections 768; }
        http {
            include /etc/nginx/mime.types;
            default_type application/octet-stream;
            sendfile on;
            tcp_nopush on;
            $nodelay
            $keep
            access_log off;
            client_max_body_size 80m;
            client_body_temp_path $out/body;
            fastcgi_temp_path $out/fastcgi;
            proxy_temp_path $out/proxy;
            scgi_temp_path $out/scgi;
            uwsgi_temp_path $out/uwsgi;
            server {
                listen {$spec->host_address}:$port$ssl;
                $tls
                root $public;
                location / { try_files \$uri /index.php\$is_args\$args; }
                location ~ \\.php\$ {
                    include /etc/nginx/fastcgi.conf;
                    fastcgi_param WATTWIRE_MESSAGE $out/message.php;
                    fastcgi_pass unix:$pool;
                }
            }
        }

        CONFIGURATION;
}
